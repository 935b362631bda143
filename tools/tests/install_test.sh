#!/usr/bin/env bash
# Installs a build, moves the tree, and uses it from outside: find_package, pkg-config, and the command.
# Usage: install_test.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved"

cmake -S "$here/outside" -B "$work/outside" -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$work/outside" >/dev/null
test "$("$work/outside/outside")" = "14 on reference"

PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name quire.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
c++ -std=c++20 "$here/outside/main.cpp" -o "$work/by_pkg_config" $(pkg-config --cflags --libs quire)
test "$("$work/by_pkg_config")" = "14 on reference"

"$work/moved/bin/quire" backends >/dev/null
! grep -rIl "$build" "$work/moved" | grep . || { echo "the installed tree names its build folder"; exit 1; }
echo "installed, moved and used by find_package and pkg-config"
