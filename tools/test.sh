#!/usr/bin/env bash
# Sets up, builds and runs every test: release, sanitizers, other instruction sets and machines, the installed tree, the fuzzers' corpus.
# Ends with a line "N passed, N failed, N skipped"; each test case counts, and what is skipped is named.
# Usage: tools/test.sh [--quick | --all]   (--quick: the release build's tests alone; --all: also what takes turns, by the day, in other runs)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
quick= all=
case "${1:-}" in
  "") ;;
  --quick) quick=1 ;;
  --all) all=1 ;;
  *) echo "tools/test.sh: $1: unknown; allowed: --quick, --all" >&2; exit 2 ;;
esac

passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# A script or command that is one test; exit status 77 says that it can't be run here.
check() {
  local name=$1
  shift
  "$@" >"$log" 2>&1
  local status=$?
  case $status in
    0) passed=$((passed + 1)); echo "ok       $name: $(tail -n 1 "$log")" ;;
    77) skipped=$((skipped + 1)); echo "skipped  $name: $(tail -n 1 "$log")" ;;
    *) failed=$((failed + 1)); echo "FAILED   $name (exit status $status)"; tail -n 40 "$log" ;;
  esac
}

# A doctest program: its cases count one by one; a case that skips itself prints "SKIPPED <name>: <reason>".
doctest() {
  local preset=$1 program=$2
  "build/$preset/bin/$program" >"$log" 2>&1
  local status=$?
  local summary good bad left
  summary=$(grep -a '^\[doctest\] test cases:' "$log" | tail -n 1)
  good=$(sed -n 's/.*| *\([0-9]*\) passed.*/\1/p' <<<"$summary")
  bad=$(sed -n 's/.*| *\([0-9]*\) failed.*/\1/p' <<<"$summary")
  left=$(grep -ac '^SKIPPED ' "$log")
  if [ -z "$summary" ] || { [ "$status" -ne 0 ] && [ "${bad:-0}" -eq 0 ]; } || [ $((good + bad)) -eq 0 ]; then
    failed=$((failed + 1))
    echo "FAILED   $preset $program (exit status $status)"
    tail -n 40 "$log"
    return
  fi
  passed=$((passed + good - left)) failed=$((failed + bad)) skipped=$((skipped + left))
  echo "$([ "$bad" -eq 0 ] && echo ok || echo FAILED)       $preset $program: $((good - left)) passed, $bad failed, $left skipped"
  grep -a '^SKIPPED ' "$log"
  [ "$bad" -eq 0 ] || grep -a -A 8 ': ERROR: \|: FATAL ERROR: \|TEST CASE:' "$log" | head -n 80
}

build() {
  local preset=$1
  shift
  echo "building $preset"
  local werror=OFF
  [ -z "${CI:-}" ] || werror=ON
  cmake --preset "$preset" -DQUIRE_WERROR=$werror >"$log" 2>&1 && cmake --build --preset "$preset" "$@" >"$log" 2>&1 && return 0
  failed=$((failed + 1))
  echo "FAILED   build of $preset"
  tail -n 60 "$log"
  return 1
}

# A clone in another folder finds the compiler's results again.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
tools/setup.sh --tests --gpu || exit 1
programs="core_tests reference_tests conformance_tests tools_tests template_tests simt_tests"
check "C ABI header" bash core/tests/backend_header_test.sh
if build release; then
  for program in $programs; do doctest release "$program"; done
  check "commands" bash tools/tests/command_test.sh build/release/bin/quire
  check "digest, every instruction set and 1 and 2 threads" bash tools/tests/digest_test.sh build/release/bin/quire
  check "installed tree" bash tools/tests/install_test.sh build/release
  check "GPU plugins" bash tools/tests/gpu_plugins_test.sh build/release
  check "a copy of the template" bash tools/tests/template_test.sh build/release
fi
if [ -z "$quick" ]; then
  # Builds that take turns, by the day, so that a run ends within half an hour on two cores.
  turn=$(($(date +%-j) % 3))
  # has_turn NAME TURN...
  has_turn() {
    local name=$1
    shift
    [ -n "$all" ] || [[ " $* " == *" $turn "* ]] && return 0
    skipped=$((skipped + 1))
    echo "skipped  $name: another day's turn; tools/test.sh --all runs it"
    return 1
  }
  if has_turn "address sanitizer" 0 1 && build asan; then
    for program in $programs; do doctest asan "$program"; done
    check "commands (asan)" bash tools/tests/command_test.sh build/asan/bin/quire
    check "corpus of the fuzzers (asan)" bash tools/tests/corpus_test.sh build/asan
  fi
  has_turn "digest, aarch64 under qemu-user" 0 && check "digest, aarch64 under qemu-user" bash tools/tests/aarch64_test.sh build/release/bin/quire
  has_turn "libFuzzer" 1 && check "libFuzzer" bash tools/tests/fuzz_test.sh
  # What runs on threads stands in four of the programs.
  threaded="core_tests reference_tests conformance_tests simt_tests"
  [ -z "$all" ] || threaded="$programs quire-command"
  if has_turn "thread sanitizer" 2 && build tsan --target $threaded; then
    for program in ${threaded/ quire-command/}; do doctest tsan "$program"; done
    [ -z "$all" ] || check "commands (tsan)" bash tools/tests/command_test.sh build/tsan/bin/quire
  fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
