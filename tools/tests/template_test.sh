#!/usr/bin/env bash
# The way of backends/README.md: copies the template's folder under another name, builds it with one line against an installed tree, and runs it;
# then plants a mistake in the copy, which conformance must find.
# Usage: template_test.sh BUILD_FOLDER
set -uo pipefail
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../backends/template" && pwd)
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

cmake --install "$build" --prefix "$work/prefix" >/dev/null || { echo "no tree was installed"; exit 1; }
quire=$work/prefix/bin/quire
mkdir "$work/mychip" "$work/plugins"
cp "$source"/*.[ch] "$work/mychip"
mv "$work/mychip/template.c" "$work/mychip/mychip.c"
mv "$work/mychip/template.h" "$work/mychip/mychip.h"
sed -i 's/template/mychip/g; s/TEMPLATE/MYCHIP/g' "$work"/mychip/*
export QUIRE_BACKEND_PATH=$work/plugins

# The one line of backends/README.md.
build_plugin() {
  (cd "$work/mychip" &&
    cc -std=c11 -O2 -Wall -Wextra -Wpedantic -Wconversion -Werror -shared -fPIC -fvisibility=hidden \
      -I"$work/prefix/include" -o "$work/plugins/quire_mychip.so" ./*.c -lm)
}

expect 0 '^$' bash -c "$(declare -f build_plugin); work=$work; build_plugin; echo"
expect 0 '^quire_backend_query$' bash -c "nm -D --defined-only '$work/plugins/quire_mychip.so' | awk '{print \$3}'"
expect 0 '^1$' bash -c "nm -D --defined-only '$work/plugins/quire_mychip.so' | wc -l"
expect 0 '^mychip +available' "$quire" backends
if "$quire" doctor --help >/dev/null 2>&1; then
  expect 0 'mychip' "$quire" doctor
fi

echo '{"op":"extend","index":{"rows":{"context":4,"lens":[2]}},"values":[[[1],[2]]],"pool":[[9],[9],[9],[9]],"expect":{"seen":[[[1],[2],[0],[0]]]}}' >"$work/extend.json"
echo '{"op":"mask","index":{"whole":{"batch":1,"seq":3}}}' >"$work/mask.json"
expect 0 '"status":"ok"' "$quire" eval --backend mychip "$work/extend.json"
expect 1 'mask is not written' "$quire" eval --backend mychip "$work/mask.json"
expect 0 ', 0 failed' "$quire" conformance --backend mychip --op positions --quiet --count 200
expect 0 ', 0 failed, 0 unsupported' "$quire" conformance --backend mychip --family extend --quiet --count 1000
# What it lacks is unsupported, no failure; but a whole run is incomplete with laws that nothing exercised.
expect 3 ', 0 failed' "$quire" conformance --backend mychip --quiet --count 300
grep -q 'mask is not written' "$work/out" "$work/err" || { wrong=$((wrong + 1)); echo "the run's report does not say what is not written"; }

# A window one position too narrow.
cp "$work/mychip/index.c" "$work/index.c"
sed -i 's/t - index->window + 1/t - index->window + 2/' "$work/mychip/index.c"
cmp -s "$work/index.c" "$work/mychip/index.c" && { wrong=$((wrong + 1)); echo "no mistake was planted"; }
build_plugin
expect 1 '^FAILED extend seen at lane .*\((A7|B1|C5|C6|C7)' "$quire" conformance --backend mychip --op extend --quiet --count 300
line=$(sed -n 's/.*--case \(1:[a-z]*:[0-9]*\).*/\1/p' "$work/out" "$work/err" | head -n 1)
expect 1 '^FAILED extend seen' "$quire" conformance --backend mychip --case "$line"
cp "$work/index.c" "$work/mychip/index.c"
build_plugin
expect 0 '^\{' "$quire" conformance --backend mychip --case "$line"

echo "$checked checks, $wrong failed"
[ "$wrong" -eq 0 ]
