# For the scripts that try commands, sourced by them: a folder "$work" that goes at the end, the counts, and expect.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0 checked=0

# expect STATUS PATTERN COMMAND...: the exit status, and a line of its output (both streams) that matches. Exactly one line on an error.
# The output stays in "$work/out" and "$work/err".
expect() {
  local status=$1 pattern=$2
  shift 2
  local got
  "$@" >"$work/out" 2>"$work/err" </dev/null
  got=$?
  checked=$((checked + 1))
  if [ "$got" -ne "$status" ] || ! grep -aqE -- "$pattern" "$work/out" "$work/err" || { [ "$status" -eq 2 ] && [ "$(wc -l <"$work/err")" -ne 1 ]; }; then
    wrong=$((wrong + 1))
    echo "$*: exit status $got instead of $status, or no line \"$pattern\":"
    tail -n 12 "$work/out" "$work/err" | cut -c1-600
  fi
}
