#!/usr/bin/env bash
# The GPU kernels under the emulator: the quick conformance level at both warp widths, thread orders, devices, golden cases, the language model, a trace.
# Usage: tools/tests/simt_test.sh BUILD [--all]   (--all: the trace whole, some minutes; exit status 77 where the emulator is not built)
set -uo pipefail
build=$1 all=${2:-}
quire=$build/bin/quire
[ -f "$build/lib/quire/backends/quire_simt.so" ] || { echo "no simt plugin is built here (libboost-context-dev)"; exit 77; }
data=${QUIRE_DATA:-../shared/data}
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
whole='^passed: [0-9]+ cases, [0-9]+ calls, 0 failed, 0 unsupported'

expect 0 "$whole" env QUIRE_SIMT_WARP=32 "$quire" conformance --backend simt --level quick --quiet
expect 0 "$whole" env QUIRE_SIMT_WARP=64 QUIRE_SIMT_ORDER=greedy "$quire" conformance --backend simt --level quick --quiet
for seed in 1 2 3; do
  expect 0 "$whole" env QUIRE_SIMT_ORDER=random QUIRE_SIMT_SEED=$seed QUIRE_SIMT_GRID=2 "$quire" conformance --backend simt --count 150 --seed $((100 + seed)) --quiet
done
# Every call copied to a device and back (but those of far, whose pools are gigabytes).
for device in 0 2; do
  expect 0 "$whole" env QUIRE_SIMT_DEVICES=3 "$quire" conformance --backend simt --device $device --count 100 --quiet \
    --family index extend attend gdn_prefill gdn_decode slots paged verify steps golden
done
expect 2 'device' env QUIRE_SIMT_DEVICES=3 "$quire" conformance --backend simt --device 3 --count 1 --quiet
expect 2 'QUIRE_SIMT_WARP' env QUIRE_SIMT_WARP=16 "$quire" conformance --backend simt --count 1 --quiet
# The hand-made golden cases, all but those that ask for float64's precision of a float32 backend.
for file in conformance/golden/[!r]*.jsonl; do
  grep -av '"id":"[^"]*(float64)"' "$file" >"$work/cases.jsonl"
  expect 0 '^' env QUIRE_SIMT_DEVICES=2 "$quire" eval --backend simt "$work/cases.jsonl"
done
sed 's/"data":\[5,9\]/"data":[5,8]/' conformance/golden/steps.jsonl >"$work/changed.jsonl"
expect 1 'seen' "$quire" eval --backend simt "$work/changed.jsonl"

if [ -f "$data/stories260K.bin" ]; then
  expect 0 '^Once upon a time' "$quire" story --backend simt --layout all
  layouts=$(grep -c '^Once upon a time' "$work/out")
  checked=$((checked + 1))
  if [ "$layouts" -ne 9 ] || ! cmp -s <(for _ in $(seq 9); do cat "$data/story.txt"; done) "$work/out"; then
    wrong=$((wrong + 1))
    echo "the story on $layouts layouts of 9 is not the published text nine times"
  fi
else
  echo "SKIPPED the story: $data/stories260K.bin is not there"
fi
if [ -f "$data/conversation_trace.jsonl" ]; then
  expect 0 '^mismatches +0$' "$quire" replay "$data/conversation_trace.jsonl" --requests 20 --scale 0.125 --backend simt
  expect 1 '^mismatches +[1-9]' "$quire" replay "$data/conversation_trace.jsonl" --requests 10 --scale 0.125 --backend simt --fault boundary
  [ -z "$all" ] || expect 0 '^mismatches +0$' "$quire" replay "$data/conversation_trace.jsonl" --requests 20 --backend simt
else
  echo "SKIPPED the trace: $data/conversation_trace.jsonl is not there"
fi
echo "$checked checks, $wrong wrong"
[ "$wrong" -eq 0 ]
