#!/usr/bin/env bash
# One digest of the golden cases' results, whatever the instruction set and thread count.
# Usage: digest_test.sh QUIRE [RUNNER...]: the command, and what runs it (qemu-aarch64). Prints the digest; fails where two differ.
set -euo pipefail
quire=$1
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
first=
# An instruction set that is none: the refusal names those that this processor has.
isas=$(QUIRE_ISA=none "$@" "$quire" backends | sed -n "s/.*allowed: \(.*\) on this processor.*/\1/p" | tr -d ,)
test -n "$isas"
for isa in $isas; do
  for threads in 1 2; do
    digest=$(QUIRE_ISA=$isa QUIRE_THREADS=$threads "$@" "$quire" eval "$root"/conformance/golden/*.jsonl | sha256sum | cut -d' ' -f1)
    first=${first:-$digest}
    if [ "$digest" != "$first" ]; then
      echo "QUIRE_ISA=$isa, $threads threads: $digest instead of $first" >&2
      exit 1
    fi
  done
done
echo "$first" $isas
