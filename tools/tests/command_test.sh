#!/usr/bin/env bash
# The command as a user meets it: right calls, wrong calls, missing files, a full disk, an interrupt.
# Usage: command_test.sh QUIRE
set -uo pipefail
quire=$1
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

good='{"op":"positions","index":{"whole":{"batch":1,"seq":3}}}'
bad='{"op":"positions","index":{"whole":{"batch":0,"seq":3}}}'
echo "$good" >"$work/good.json"
printf '%s\n%s\n' "$bad" "$good" >"$work/mixed.jsonl"
echo "[$good,$good]" >"$work/list.json"
echo "$good {" >"$work/cut.json"
: >"$work/empty.json"
head -c 100000 /dev/zero | tr '\0' '[' >"$work/deep.json"

expect 0 'backends' "$quire" --help
expect 0 '^[0-9]+\.[0-9]+\.[0-9]+$' "$quire" --version
expect 2 'subcommand' "$quire"
expect 2 'nonsense' "$quire" nonsense
expect 0 'reference +available' "$quire" backends
expect 0 '"status": "available"' "$quire" backends --json
expect 0 'QUIRE_ISA' env QUIRE_ISA=nonsense "$quire" backends

expect 0 '"data":\[0,1,2\]' "$quire" eval "$work/good.json"
expect 0 '"intact":true' "$quire" eval --backend reference "$work/good.json"
expect 0 '"status":"ok"' "$quire" eval "$work/list.json"
expect 1 '"argument":"batch"' "$quire" eval "$work/mixed.jsonl"
expect 2 'line 1.*syntax error' "$quire" eval "$work/cut.json"
expect 2 'no case' "$quire" eval "$work/empty.json"
expect 2 'nested deeper' "$quire" eval "$work/deep.json"
expect 2 'No such file' "$quire" eval "$work/missing.json"
expect 2 'Is a directory' "$quire" eval "$work"
expect 2 'no file' "$quire" eval
expect 2 'no case' bash -c 'echo "[]" | "$0" eval -' "$quire"
expect 2 'anything but nothing' "$quire" eval --backend '' "$work/good.json"
expect 2 'anything but nothing' "$quire" eval --side '' "$work/good.json"
expect 2 'anything but nothing' "$quire" story --temperature ''
expect 2 'nonsense' env QUIRE_BACKEND=nonsense "$quire" eval "$work/good.json"
expect 2 "can't be written" bash -c '"$0" --version >/dev/full' "$quire"
expect 2 'not expected: --zzz' "$quire" eval --zzz
expect 2 'a\\x0ab' "$quire" eval $'a\nb'
expect 2 'duplicate key' bash -c 'echo "{\"op\":\"mask\",\"op\":\"index\"}" | "$0" eval -' "$quire"
expect 2 'backend: "nonsense"; allowed: .*reference' "$quire" eval --backend nonsense "$work/good.json"
expect 1 '"argument":"QUIRE_ISA"' env QUIRE_ISA=nonsense "$quire" eval --backend reference "$work/good.json"
expect 1 '"argument":"QUIRE_THREADS"' env QUIRE_THREADS=0 "$quire" eval "$work/good.json"
expect 2 "can't be written" bash -c '"$0" eval "$1" >/dev/full' "$quire" "$work/good.json"

for r in 0 1 2 3 4 5 6 7; do
  echo "{\"timestamp\":$((r * 20)),\"input_length\":$((700 + r * 150)),\"output_length\":$((40 + r)),\"hash_ids\":[1,$((r % 2 + 2))$( [ $r -gt 2 ] && echo ",$((10 + r))" )]}"
done >"$work/trace.jsonl"
echo '{"timestamp":0,"input_length":5}' >"$work/short.jsonl"
replay=("$quire" replay "$work/trace.jsonl" --scale 0.125 --verify 1 --check)
expect 0 '^mismatches +0$' "${replay[@]}"
expect 0 '"mismatches": 0' "${replay[@]}" --json
expect 0 '^mismatches +0$' "${replay[@]}" --json "$work/report.json"
expect 0 'tokens_per_second' cat "$work/report.json"
for fault in stale share boundary reject window evict; do
  expect 1 '^  step [0-9]+, request [0-9]+, layer (attention|gdn [0-2]), page [0-9]+' "$quire" replay "$work/trace.jsonl" --scale 0.125 --verify 1 --fault $fault --pages 30
done
for threads in 1 2; do "${replay[@]}" --threads $threads >"$work/threads$threads" 2>/dev/null; done
expect 0 'the same' bash -c 'cmp "$1" "$2" && echo the same' - "$work/threads1" "$work/threads2"
expect 0 'wrote .*case.json' "${replay[@]}" --save "$work/case.json" --save-request 5
expect 0 '"status":"ok"' "$quire" eval "$work/case.json"
expect 0 'wrote .*step.json' "${replay[@]}" --save "$work/step.json" --save-step 3
expect 0 '"status":"ok"' "$quire" eval "$work/step.json"
expect 2 'trace is required' "$quire" replay
expect 2 "can't be opened" "$quire" replay "$work/missing.jsonl"
expect 2 'short.jsonl:1: output_length: nothing' "$quire" replay "$work/short.jsonl"
expect 2 'without a request' "$quire" replay "$work/empty.json"
expect 2 '--start: 8; allowed: 0 to 7' "${replay[@]}" --start 8
expect 2 '--pages: 2; allowed: at least' "${replay[@]}" --pages 2
expect 2 '--page-size: 100; allowed: a multiple of 64' "${replay[@]}" --page-size 100
expect 2 '--max-memory: 1 MiB; allowed: at least' "${replay[@]}" --max-memory 1M
expect 2 'a number from 0 to 1' "${replay[@]}" --draft 2
expect 2 'a number above 0' "${replay[@]}" --scale 0
expect 2 'whole numbers' "${replay[@]}" --requests 0
expect 2 'stale, share, boundary, reject, window, evict' "${replay[@]}" --fault nonsense
expect 2 'backend: "nonsense"' "${replay[@]}" --backend nonsense
expect 2 "can't be written" bash -c '"$@" >/dev/full' - "${replay[@]}"
expect 2 "can't be written" "${replay[@]}" --json "$work/none/report.json"
expect 2 'no regular file' "${replay[@]}" --json /dev/full
mkfifo "$work/pipe.json"
expect 2 'no regular file' "${replay[@]}" --save "$work/pipe.json"
expect 2 'ends in .json' "${replay[@]}" --save "$work/case.npz"
expect 2 'which --json names too' "${replay[@]}" --save "$work/x.json" --json "$work/x.json"
expect 2 'which trace names too' "${replay[@]}" --json "$work/trace.jsonl"
expect 2 'number of bytes' "${replay[@]}" --max-memory 99999999999999999999
expect 2 'number of bytes' "${replay[@]}" --max-memory -1
expect 0 'nothing was planted' "${replay[@]}" --fault reject --draft 0
expect 2 'QUIRE_ISA' env QUIRE_ISA=nonsense "${replay[@]}" --backend reference
expect 0 '^mismatches +0$' bash -c 'cat "$0" | "$1" replay - --scale 0.125' "$work/trace.jsonl" "$quire"
expect 2 "can't be written" "${replay[@]}" --save "$work/none/case.json"

expect 0 'passed: .* 0 failed' "$quire" conformance --backend reference --count 200 --quiet
expect 0 '1 of 1 mutants caught' "$quire" conformance --mutant holes-masked
expect 0 '"failed": 0' "$quire" conformance --count 4 --family extend --json --quiet
expect 0 '"op":"extend"' "$quire" conformance --case 1:extend:7
expect 0 '^families: ' "$quire" conformance --list
expect 0 '"laws": \[' "$quire" conformance --list --json
expect 1 'no cases' "$quire" conformance --family slots --op extend --count 5 --quiet
expect 3 'incomplete' "$quire" conformance --count 1 --quiet
expect 0 '"op":"attend"' "$quire" conformance --case 1:extend:7,1:attend:3
expect 0 'passed' "$quire" conformance --count 4 --family extend --jobs 64 --quiet
expect 2 'whole numbers from 1 to 64' "$quire" conformance --jobs 0
expect 2 'whole numbers from 1 to 64' "$quire" conformance --jobs 65
expect 2 'whole numbers from 1 to 64' "$quire" conformance --jobs two
expect 0 '0 false alarms' "$quire" conformance --honest --count 2 --jobs 2
expect 2 'backend: "nonsense"' "$quire" conformance --backend nonsense
expect 2 'op: "nonsense"' "$quire" conformance --op nonsense
expect 2 'law: "Z9"' "$quire" conformance --law Z9
expect 2 'case: "1:extend:x"' "$quire" conformance --case 1:extend:x
expect 0 '^token-direct +68 cases +0 false alarms' "$quire" conformance --honest=token-direct --count 4 --quiet
expect 0 '^[0-9]+ cases, 0 false alarms' "$quire" conformance --honest tf32,half-stored --count 4
expect 0 'honest contracts: float32 tf32' "$quire" conformance --list
expect 0 '"failed": 0' "$quire" conformance --honest=bf16 --count 4 --json
expect 0 '^2 cases, 0 false alarms' "$quire" conformance --honest=bf16-stored-token-direct --case 1:attend:7 --case 1:gdn_prefill:8
expect 0 'false alarms' "$quire" conformance --honest=half --count 8 --report "$work/report.md"
expect 0 '^## gdn_prefill' cat "$work/report.md"
expect 0 'false alarms' "$quire" conformance --honest=half --count 8 --report "$work/report.json"
expect 0 '"command": "quire conformance --honest=half --seed 0 --count 8' cat "$work/report.json"
echo kept >"$work/kept.md"
mkdir "$work/folder.md"
expect 2 'honest: "nonsense"; allowed: .*bf16-stored.*token-online-fma' "$quire" conformance --honest=nonsense --report "$work/kept.md"
expect 0 '^kept$' cat "$work/kept.md"
expect 2 'report: ".*report.txt"; allowed: names that end in .md or .json' "$quire" conformance --honest --report "$work/report.txt"
expect 2 'report: ".*missing/report.md" can.t be written: No such file' "$quire" conformance --honest --report "$work/missing/report.md"
expect 2 'report: ".*folder.md" can.t be written: Is a directory' "$quire" conformance --honest --report "$work/folder.md"
expect 0 '^8 cases, 0 false alarms' "$quire" conformance --honest=bf16-token-direct --family attend,verify --count 4
expect 2 'honest: together with --law' "$quire" conformance --honest --op attend
expect 2 'family: "nonsense"' "$quire" conformance --honest --family nonsense
expect 2 'report: without --honest' "$quire" conformance --report "$work/report.md" --count 1
expect 2 'one of --mutants' "$quire" conformance --honest --mutants
expect 2 'one of --mutants' "$quire" conformance --honest --backend reference
expect 2 'mutant: "nonsense"' "$quire" conformance --mutant nonsense

expect 2 'whole numbers from 1' "$quire" conformance --count 0
expect 2 'whole numbers from 1' "$quire" conformance --count 99999999999999999999999
expect 2 'finite numbers above 0' "$quire" conformance --time nan
expect 2 'one of --mutants' "$quire" conformance --mutants --backend reference
expect 2 'QUIRE_MAX_MEMORY' env QUIRE_MAX_MEMORY=foo "$quire" conformance --count 1
expect 2 'whole numbers' "$quire" story --seed -1
expect 2 'whole numbers' "$quire" story --tokens ''
expect 2 'No such file|no such file' "$quire" story --model "$work/missing.bin"

# The report is the same for any number of jobs, its times apart.
timeless() { sed -E 's/[0-9.]+ s, [0-9]+ cases.s$//; /"seconds"/d'; }
for form in '' --json; do
  checked=$((checked + 1))
  for jobs in 1 3; do "$quire" conformance --count 40 --quiet $form --jobs $jobs | timeless >"$work/jobs$jobs"; done
  if [ ! -s "$work/jobs1" ] || ! cmp -s "$work/jobs1" "$work/jobs3"; then
    wrong=$((wrong + 1))
    echo "conformance $form: another report with three jobs than with one"
  fi
done

# Every line that is told names the cases that run then, in the form that replays them; all cases are told.
checked=$((checked + 1))
"$quire" conformance --count 40 --family extend --jobs 2 2>"$work/told" >/dev/null
if grep -avqE '^--case 1:extend:[0-9]+(,1:extend:[0-9]+)?$' "$work/told" || [ "$(grep -aoE '1:extend:[0-9]+' "$work/told" | sort -u | wc -l)" -ne 40 ]; then
  wrong=$((wrong + 1))
  echo 'conformance --jobs 2: cases run of which no line tells'
fi

# Standard error that can't be written costs the message, not the status.
for target in '2>&-' '2>/dev/full'; do
  checked=$((checked + 1))
  bash -c "'$quire' eval '$work/missing.json' $target"
  got=$?
  [ "$got" -eq 2 ] || { wrong=$((wrong + 1)); echo "eval $target: exit status $got instead of 2"; }
done

# Side files: in, and out again.
expect 0 '"key":"0.positions"' "$quire" eval --side "$work/out.npz" "$work/good.json"
echo '{"op":"extend","index":{"whole":{"batch":1,"seq":3}},"values":{"file":"out.npz","key":"0.positions"},"expect":{"seen":[[0,1,2]]}}' >"$work/side.json"
expect 0 '"verdict":"pass"' "$quire" eval "$work/side.json"
expect 2 'missing' "$quire" eval --side "$work/missing/out.npz" "$work/good.json"
sed 's/"key":"0.positions"/"key":"x"/' "$work/side.json" >"$work/key.json"
expect 1 '"argument":"values".*0.positions' "$quire" eval "$work/key.json"

# A wrong expectation is seen.
echo '{"op":"positions","index":{"whole":{"batch":1,"seq":3}},"expect":{"positions":[[0,1,3]]}}' >"$work/wrong.json"
expect 1 '"verdict":"fail"' "$quire" eval "$work/wrong.json"

# A reader that goes away, and an interrupt between cases.
for _ in $(seq 2000); do cat "$work/good.json"; done >"$work/many.jsonl"
"$quire" eval "$work/many.jsonl" | head -n 1 >/dev/null
mkfifo "$work/slow"
"$quire" eval - <"$work/slow" >"$work/out" 2>"$work/err" &
job=$!
{ cat "$work/good.json"; sleep 1; } >"$work/slow" &
sleep 0.3
kill -INT "$job" 2>/dev/null
wait "$job"
got=$?
checked=$((checked + 1))
[ "$got" -eq 130 ] || [ "$got" -eq 0 ] || { wrong=$((wrong + 1)); echo "an interrupt: exit status $got"; cat "$work/err"; }

# An interrupt of a calibration run: what was done is written, and nothing beside it is left.
"$quire" conformance --honest --count 100000 --quiet --report "$work/cut.md" >"$work/out" 2>"$work/err" &
job=$!
sleep 1
kill -INT "$job"
wait "$job"
got=$?
checked=$((checked + 1))
if [ "$got" -ne 130 ] || ! grep -q interrupted "$work/err" || ! grep -q 'The run was interrupted' "$work/cut.md" || ls "$work"/*.tmp >"$work/out" 2>&1; then
  wrong=$((wrong + 1))
  echo "an interrupt of a calibration run: exit status $got"
  cat "$work/err" "$work/out"
fi

echo "$checked checks, $wrong wrong"
[ "$wrong" -eq 0 ]
