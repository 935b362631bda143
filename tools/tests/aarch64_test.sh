#!/usr/bin/env bash
# A build for 64-bit Arm, run under qemu-user, generates the same cases as this machine's build and gives the same digest of the golden cases.
# Usage: aarch64_test.sh QUIRE (this machine's command)
set -euo pipefail
quire=$(cd "$(dirname "$1")" && pwd)/quire
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" >/dev/null || { echo "$tool is not installed (tools/setup.sh --tests)"; exit 77; }
done
cmake --preset aarch64 >/dev/null
cmake --build --preset aarch64 --target quire-command >/dev/null
# The same cases on both machines, bit for bit (the generator's families; wide and far take long under emulation).
lines=$("$quire" conformance --list | sed -n 's/^families: //p' | tr ' ' '\n' | grep -vE '^(wide|far)$' | sed 's/.*/1:&:17/' | paste -sd,)
cmp <("$quire" conformance --quiet --case "$lines") <(qemu-aarch64 build/aarch64/bin/quire conformance --quiet --case "$lines")
echo "cases:  $lines"
native=$("$here/digest_test.sh" "$quire")
arm=$("$here/digest_test.sh" build/aarch64/bin/quire qemu-aarch64)
echo "native: $native"
echo "arm:    $arm"
test "${native%% *}" = "${arm%% *}"
