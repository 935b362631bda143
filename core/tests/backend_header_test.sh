#!/usr/bin/env bash
# The C ABI's header alone: no warning in C and in C++ with each compiler that is installed, and each struct's last field is asserted.
# Usage: backend_header_test.sh
set -uo pipefail
include=$(cd "$(dirname "${BASH_SOURCE[0]}")/../include" && pwd)
header=$include/quire/backend.h
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warnings=(-m64 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wcast-qual -Werror)
wrong=0 checked=0 compilers=()

fail() { wrong=$((wrong + 1)); echo "$*"; }

# compiles COMPILER LANGUAGE FOLDER: a file that includes the header twice and nothing else.
printf '#include <quire/backend.h>\n#include <quire/backend.h>\nextern quire_backend_table quire_checked;\n' >"$work/alone.c"
cp "$work/alone.c" "$work/alone.cpp"
compiles() {
  local own=(-Wstrict-prototypes "$work/alone.c")
  [[ $2 == c++* ]] && own=(-Wold-style-cast "$work/alone.cpp")
  "$1" "-std=$2" "${warnings[@]}" "-I$3" "${own[@]}" >"$work/log" 2>&1
}

for compiler in gcc clang g++ clang++; do
  command -v "$compiler" >/dev/null || continue
  compilers+=("$compiler")
  case $compiler in *++) languages="c++11 c++17 c++20" ;; *) languages="c11 c17" ;; esac
  for language in $languages; do
    checked=$((checked + 1))
    compiles "$compiler" "$language" "$include" || { fail "$compiler -std=$language:"; cat "$work/log"; }
  done
done
[ ${#compilers[@]} -gt 0 ] || { echo "no compiler is installed"; exit 77; }

# A field put behind a struct's last one breaks the header, in both languages.
mkdir -p "$work/planted/quire"
structs=$(sed -n 's/^typedef struct \(quire_[a-z_]*\) {$/\1/p' "$header")
[ "$(wc -w <<<"$structs")" -ge 19 ] || fail "only these structs were found in the header: $structs"
for struct in $structs; do
  sed "s/^} $struct;\$/  int64_t planted[2];\n} $struct;/" "$header" >"$work/planted/quire/backend.h"
  for compiler in "${compilers[@]}"; do
    case $compiler in gcc) language=c11 ;; g++) language=c++20 ;; *) continue ;; esac
    checked=$((checked + 1))
    if compiles "$compiler" "$language" "$work/planted" || ! grep -q "$struct must end with" "$work/log"; then
      fail "$compiler -std=$language: a field behind the last one of $struct goes unseen"
    fi
  done
done
echo "$checked checks with ${compilers[*]}, $wrong failed"
[ "$wrong" -eq 0 ]
