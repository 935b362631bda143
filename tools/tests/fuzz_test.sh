#!/usr/bin/env bash
# Builds the libFuzzer targets, runs each over its kept corpus and for a few seconds more.
# Usage: fuzz_test.sh [SECONDS per target, 5]
set -euo pipefail
seconds=${1:-5}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v clang++ >/dev/null || { echo "clang++ is not installed (tools/setup.sh --tests)"; exit 77; }
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  clang++ -fsanitize=fuzzer,address -x c++ - -o /dev/null 2>/dev/null || { echo "clang++ has no libFuzzer (libclang-rt-dev)"; exit 77; }
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target fuzzers >/dev/null
for fuzzer in build/fuzz/bin/*_fuzzer; do
  name=$(basename "$fuzzer" _fuzzer)
  scratch=$(mktemp -d)
  QUIRE_MAX_MEMORY=256M "$fuzzer" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=20 -artifact_prefix="$scratch/" \
    "$scratch" "tools/fuzz/corpus/$name" 2>"$scratch/log" || { tail -n 40 "$scratch/log"; exit 1; }
  echo "$name: $(grep -a '^Done' "$scratch/log" || tail -n 1 "$scratch/log")"
  rm -rf "$scratch"
done
