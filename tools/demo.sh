#!/usr/bin/env bash
# The main job on a fresh machine: sets up, builds, and shows Quire at work. Stops at the first thing that is not as it should be.
# Usage: tools/demo.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/setup.sh
[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
echo "demo: building (a few minutes the first time)"
cmake --build --preset release --target quire-command >/dev/null
quire=build/release/bin/quire

echo; echo "== The backends of this machine: quire backends"
"$quire" backends

echo; echo "== The laws on golden cases: quire eval conformance/golden/*.jsonl"
"$quire" eval --quiet conformance/golden/*.jsonl

echo; echo "== A table with a mistake in it: quire eval, op check"
"$quire" eval - <<'CASE'
{"op":"check","index":{"pos":[[2]],"table":[[4,-1,4]]},"slots":8}
CASE

echo; echo "== A backend checked with random cases of every law: quire conformance"
"$quire" conformance --backend reference --count 200 --quiet | tail -n 1

data=../shared/data
if [ -n "${QUIRE_MODEL:-}" ] || [ -f "$data/stories260K.bin" ]; then
  echo; echo "== A language model on every cache layout: quire story --layout all"
  "$quire" story --layout all >build/story.txt
  layouts=$(grep -c '^Once upon a time' build/story.txt)
  sed -n 1,2p build/story.txt
  if [ -f "$data/story.txt" ] && [ -z "${QUIRE_MODEL:-}" ]; then
    for _ in $(seq "$layouts"); do cat "$data/story.txt"; done | cmp - build/story.txt
    echo "$layouts layouts, each the published story byte for byte"
    if "$quire" story --layout paged --fault hole 2>/dev/null | cmp -s - "$data/story.txt"; then
      echo "a hole planted in the table changed nothing" >&2
      exit 1
    fi
    echo "with a hole planted in the table the story differs"
  fi
else
  echo; echo "== No language model at hand (../shared/data or QUIRE_MODEL), so no story is told"
fi
if [ -f "$data/conversation_trace.jsonl" ]; then
  echo; echo "== A serving trace on an engine in miniature: quire replay"
  "$quire" replay "$data/conversation_trace.jsonl" --requests 40 --scale 0.125 --verify 0.2 2>/dev/null
  if "$quire" replay "$data/conversation_trace.jsonl" --requests 40 --scale 0.125 --verify 0.2 --fault boundary >build/replay.txt 2>/dev/null; then
    echo "a page's state one token early went unnoticed" >&2
    exit 1
  fi
  echo "with each page's state one token early:"
  grep -A 1 '^mismatches' build/replay.txt
fi
echo; echo "demo: all as it should be"
