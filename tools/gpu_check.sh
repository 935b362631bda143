#!/usr/bin/env bash
# Checks a backend on the machine that has its hardware, within a budget of time: doctor, golden cases, conformance with its captured
# steps, story, replay, and the vendor's sanitizer on small cases. Needs bash, coreutils, grep and sed, and Quire: an installed tree
# (--prefix, or the one that this script stands in), else it builds these sources.
# Usage: gpu_check.sh [--backend NAME] [--prefix DIR] [--data DIR] [--logs DIR] [--seconds N]
#   --backend   the backend (cuda, else hip: the first that has a device)
#   --prefix    an installed tree
#   --data      a folder with stories260K.bin, tok512.bin and conversation_trace.jsonl; without it story and replay are skipped
#   --logs      where each step's output goes (a new folder)
#   --seconds   for everything, the build too (480)
# Ends with a table. Exit status: 0 every step passed or was skipped for a reason that is named, 1 a step failed, 2 options, 130 interrupted.
set -uo pipefail

script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/$(basename "${BASH_SOURCE[0]}")
usage() { sed -n 's/^# \{0,1\}//; 2,11p' "$script" >&2; }
backend='' prefix='' data='' logs='' budget=480
while [ $# -gt 0 ]; do
  case $1 in
    --help) usage; exit 0 ;;
    --backend | --prefix | --data | --logs | --seconds)
      if [ $# -lt 2 ] || [ -z "$2" ]; then echo "gpu_check: $1: nothing; allowed: a value" >&2; exit 2; fi
      case $1 in
        --backend) backend=$2 ;;
        --prefix) prefix=$2 ;;
        --data) data=$2 ;;
        --logs) logs=$2 ;;
        --seconds) budget=$2 ;;
      esac
      shift 2 ;;
    *) echo "gpu_check: $1: unknown" >&2; usage; exit 2 ;;
  esac
done
[[ $budget =~ ^[1-9][0-9]{0,4}$ ]] || { echo "gpu_check: --seconds: $budget; allowed: whole seconds, 1 to 99999" >&2; exit 2; }
if [ -n "$prefix" ] && [ ! -x "$prefix/bin/quire" ]; then
  echo "gpu_check: --prefix: $prefix; allowed: an installed tree, with bin/quire" >&2
  exit 2
fi
if [ -n "$logs" ]; then mkdir -p "$logs" || exit 2; else logs=$(mktemp -d "${TMPDIR:-/tmp}/gpu_check.XXXXXX"); fi
logs=$(cd "$logs" && pwd)

# ---- the table ----

names=() results=() times=() remarks=()
running='' running_pid='' running_since=0
note() { names+=("$1") results+=("$2") times+=("$3") remarks+=("${4:-}"); }
device_text=unknown

summary() {
  local n failed=0 ran=0
  echo
  echo "backend   ${backend:-none}"
  echo "device    $device_text"
  echo "logs      $logs"
  printf '%-12s %-8s %8s  %s\n' step result seconds ""
  for n in "${!names[@]}"; do
    printf '%-12s %-8s %8s  %s\n' "${names[n]}" "${results[n]}" "${times[n]}" "${remarks[n]}"
    [ "${results[n]}" != FAIL ] || failed=$((failed + 1))
    [ "${results[n]}" != pass ] || ran=$((ran + 1))
  done
  echo "$ran passed, $failed failed, $((${#names[@]} - ran - failed)) skipped or interrupted, $SECONDS of $budget seconds"
  [ "$failed" -eq 0 ] && [ "$ran" -gt 0 ]
}
interrupted() {
  trap '' INT TERM
  if [ -n "$running_pid" ]; then
    kill "$running_pid" 2>/dev/null
    wait "$running_pid" 2>/dev/null
  fi
  [ -z "$running" ] || note "$running" stopped $((SECONDS - running_since)) "interrupted"
  summary
  exit 130
}
trap interrupted INT TERM

# step NAME LIMIT COMMAND...: runs it for LIMIT seconds at most, and never past the budget.
step() {
  local name=$1 limit=$2 left=$((budget - SECONDS)) status
  shift 2
  if [ "$left" -lt 5 ]; then
    note "$name" skipped 0 "no time left"
    return 1
  fi
  [ "$limit" -le "$left" ] || limit=$left
  running=$name running_since=$SECONDS
  [ ! -t 1 ] || printf '%-12s ...\r' "$name"
  # In the background, so that an interrupt is answered at once.
  timeout --kill-after=5 "$limit" "$@" >"$logs/$name.log" 2>&1 </dev/null &
  running_pid=$!
  wait "$running_pid"
  status=$?
  running='' running_pid=''
  local seconds=$((SECONDS - running_since)) last
  last=$(grep -av '^ *$' "$logs/$name.log" | tail -n 1 | sed 's/^ *//' | cut -c 1-100)
  case $status in
    0) note "$name" pass "$seconds" "$last" ;;
    124 | 137) note "$name" FAIL "$seconds" "not done within $limit s: $last" ;;
    *) note "$name" FAIL "$seconds" "exit status $status: $last" ;;
  esac
  printf '%-12s %-8s %5s s  %s\n' "$name" "${results[-1]}" "$seconds" "${remarks[-1]}"
  [ "$status" -eq 0 ]
}
skip() {
  note "$1" skipped 0 "$2"
  printf '%-12s %-8s          %s\n' "$1" skipped "$2"
}

# ---- Quire: a tree, or a build of these sources for this machine's device alone ----

here=$(dirname "$script")
sources=''
[ ! -f "$here/../CMakeLists.txt" ] || sources=$(cd "$here/.." && pwd)
if [ -z "$prefix" ] && [ -z "$sources" ] && [ -x "$here/../../bin/quire" ]; then prefix=$here/../..; fi
if [ -n "$prefix" ]; then
  prefix=$(cd "$prefix" && pwd)
  quire=$prefix/bin/quire
elif [ -n "$sources" ]; then
  build=$sources/build/gpu
  # With line numbers in device code, for the sanitizer.
  options=(-DCMAKE_BUILD_TYPE=Release -DQUIRE_TESTS=OFF -DQUIRE_BENCHMARKS=OFF -DQUIRE_GPU=AUTO -DCMAKE_CUDA_FLAGS=-lineinfo)
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ')
  case $capability in
    "") ;;
    90) options+=(-DQUIRE_CUDA_ARCHITECTURES=90a-real) ;;
    *) options+=("-DQUIRE_CUDA_ARCHITECTURES=$capability-real") ;;
  esac
  architecture=$(rocminfo 2>/dev/null | sed -n 's/^ *Name: *\(gfx[0-9a-f]*\) *$/\1/p' | head -n 1)
  [ -z "$architecture" ] || options+=("-DQUIRE_HIP_ARCHITECTURES=$architecture")
  ! command -v ninja >/dev/null || options+=(-G Ninja)
  step configure 60 cmake -S "$sources" -B "$build" "${options[@]}" || { summary; exit 1; }
  # The command, what probes plugins, and no plugin but those that may be checked.
  targets=(quire-command quire-probe)
  case $backend in
    "")
      if [ -z "$architecture" ] && grep -q 'quire: cuda plugin by' "$logs/configure.log"; then targets+=(quire_cuda); fi
      if [ -z "$capability" ] && grep -q 'quire: hip plugin by' "$logs/configure.log"; then targets+=(quire_hip); fi ;;
    reference) ;;
    *) targets+=("quire_$backend") ;;
  esac
  if ! step build 400 cmake --build "$build" -j "$(nproc)" --target "${targets[@]}"; then
    echo "gpu_check: what was built stays in $build: another run goes on there" >&2
    summary
    exit 1
  fi
  quire=$build/bin/quire
else
  echo "gpu_check: neither an installed tree nor Quire's sources stand around $script; allowed: --prefix DIR" >&2
  exit 2
fi

# ---- the backend and its device ----

one_call='{"op":"mask","index":{"pos":[[0]],"table":[[0]]}}'
runs_here() { timeout 60 "$quire" eval - --backend "$1" >>"$logs/choice.log" 2>&1 <<<"$one_call"; }
if [ -z "$backend" ]; then
  for candidate in cuda hip; do
    if runs_here "$candidate"; then backend=$candidate && break; fi
  done
  if [ -z "$backend" ]; then
    "$quire" backends 2>&1 | grep -aE '^(cuda|hip) ' || echo "neither plugin is there"
    note backend FAIL "$SECONDS" "neither cuda nor hip runs a call here; why is in choice.log"
    summary
    exit 1
  fi
fi
# The backend's lines of the list: its first has its name in front, the others are indented.
about=$("$quire" backends 2>/dev/null | sed -n "/^$backend /,/^[^ ]/{/^$backend /p;/^ /p;}")
device_text=$(sed -n 's/^ *device  *//p' <<<"$about" | head -n 1)
driver_text=$(sed -n 's/^ *driver  *//p' <<<"$about" | head -n 1)
device_text="${device_text:-none}${driver_text:+; $driver_text}"
if command -v nvidia-smi >/dev/null && [ "$backend" = cuda ]; then
  device_text+="; kernel driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)"
fi
echo "backend $backend on $device_text"

# ---- the steps ----

if "$quire" doctor --help >/dev/null 2>&1; then step doctor 60 "$quire" doctor; else step backends 30 "$quire" backends; fi

# Expected results made by hand; what random cases expect, and those marked so, only float64 gives.
golden=''
for folder in "$sources/conformance/golden" "$prefix/share/quire/golden"; do
  if [ -f "$folder/index.jsonl" ]; then golden=$folder && break; fi
done
if [ -n "$golden" ]; then
  for file in "$golden"/*.jsonl; do
    case ${file##*/} in random_*) ;; *) grep -v '(float64)' "$file" ;; esac
  done >"$logs/golden.jsonl"
  step golden 90 "$quire" eval --backend "$backend" --quiet "$logs/golden.jsonl"
else
  skip golden "no conformance/golden here"
fi

step conformance 150 "$quire" conformance --backend "$backend" --level quick --quiet

if [ -z "$data" ] && [ -n "$sources" ] && [ -d "$sources/../shared/data" ]; then data=$sources/../shared/data; fi
if [ -f "$data/stories260K.bin" ] && [ -f "$data/tok512.bin" ]; then
  step story 60 "$quire" story --backend "$backend" --layout all --tokens 100 --model "$data/stories260K.bin" --tokenizer "$data/tok512.bin"
else
  skip story "no stories260K.bin and tok512.bin; --data names their folder"
fi
if [ -f "$data/conversation_trace.jsonl" ]; then
  # Its pools lie on the host and go to the device and back with every call: not larger than these requests need.
  step replay 90 "$quire" replay "$data/conversation_trace.jsonl" --requests 20 --scale 0.0625 --pages 512 --backend "$backend"
else
  skip replay "no conversation_trace.jsonl; --data names its folder"
fi

# Runs of few cases are not to exercise every law: exit status 3.
# shellcheck disable=SC2016
few() { step "$1" "$2" bash -c '"$@"; status=$?; [ $status -eq 3 ] || exit $status' few "${@:3}"; }

# A second device's memory, streams and graphs.
if [ "$(grep -c '^ *device ' <<<"$about")" -gt 1 ]; then
  few second 60 "$quire" conformance --backend "$backend" --device 1 --count 100 --quiet
else
  skip second "one device"
fi

# The vendor's sanitizer: small cases of every family, one after another, in every process that runs them.
sanitizer=$(command -v compute-sanitizer || ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" 2>/dev/null || true)
for tool in memcheck racecheck synccheck initcheck; do
  if [ "$backend" != cuda ]; then
    skip "$tool" "compute-sanitizer is for cuda"
  elif [ -z "$sanitizer" ]; then
    skip "$tool" "no compute-sanitizer on the PATH or in /usr/local/cuda"
  else
    few "$tool" 75 "$sanitizer" --tool "$tool" --target-processes all --error-exitcode 99 \
      "$quire" conformance --backend "$backend" --count 8 --time 45 --jobs 1 --quiet
  fi
done

summary
