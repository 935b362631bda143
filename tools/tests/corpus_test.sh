#!/usr/bin/env bash
# Each fuzz target over its kept corpus, once, in a build that has sanitizers.
# Usage: corpus_test.sh BUILD-FOLDER
set -euo pipefail
build=$1
targets=0
for target in "$build"/bin/*_corpus; do
  name=$(basename "$target" _corpus)
  echo "$name: $(QUIRE_MAX_MEMORY=256M "$target" "tools/fuzz/corpus/$name")"
  targets=$((targets + 1))
done
echo "$targets targets"
[ "$targets" -eq "$(ls tools/fuzz/*_fuzzer.cpp | wc -l)" ]
