#!/usr/bin/env bash
# The plugins cuda and hip where they were built: one exported symbol, nothing of the vendor's needed to load cuda, code for every
# architecture that was asked for, and an answer with the runtime's own words on a machine without the device.
# Usage: gpu_plugins_test.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

exports_one_symbol() { [ "$(nm -D --defined-only "$1" | sed 's/.* //')" = quire_backend_query ]; }
needs() { readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'; }

# The check itself: it must refuse a plugin that exports more.
echo 'void* quire_backend_query(void) { return 0; } void quire_extra(void) {}' >"$work/extra.c"
cc -shared -fPIC "$work/extra.c" -o "$work/extra.so"
! exports_one_symbol "$work/extra.so" || fail "a plugin with two exported symbols was not refused"

# Without a device `quire backends` says why in the runtime's words; with one the backend is there.
answers() {
  local name=$1 words=$2 line
  line=$("$build/bin/quire" backends | grep "^$name ") || fail "quire backends does not list $name"
  case $line in
    *" available "*) return ;;
    *" unavailable "*) grep -Eq "$words" <<<"$line" || fail "no reason in the runtime's words: $line" ;;
    *) fail "neither available nor unavailable: $line" ;;
  esac
}

# nvcc's fat binaries, as "elf 80" or "ptx 120" per piece of code: after a header (magic, version and its length, length of the rest) each piece
# has one (kind 1 PTX or 2 machine code, its length, the piece's length, the architecture).
number_at() { od -An "-tu$3" -j "$2" -N "$3" "$1" | tr -d ' '; }
code_in() {
  local file=$1 at=0 end size kind
  size=$(stat -c %s "$file")
  while [ "$at" -lt "$size" ]; do
    if [ "$(number_at "$file" "$at" 4)" != $((0xBA55ED50)) ]; then
      at=$((at + 8))
      continue
    fi
    end=$((at + $(number_at "$file" $((at + 6)) 2) + $(number_at "$file" $((at + 8)) 8)))
    at=$((at + $(number_at "$file" $((at + 6)) 2)))
    while [ "$at" -lt "$end" ]; do
      kind=$(number_at "$file" "$at" 2)
      case $kind in 1) kind=ptx ;; 2) kind=elf ;; esac
      echo "$kind $(number_at "$file" $((at + 28)) 4)"
      at=$((at + $(number_at "$file" $((at + 4)) 4) + $(number_at "$file" $((at + 8)) 8)))
    done
  done
}
kernels=$(find "$(dirname "${BASH_SOURCE[0]}")/../../backends/gpu/kernels" -name '*.cu' | wc -l)

found='' left=''
plugin=$build/lib/quire/backends/quire_cuda.so
if [ -f "$plugin" ]; then
  exports_one_symbol "$plugin" || fail "$plugin exports: $(nm -D --defined-only "$plugin")"
  ! needs "$plugin" | grep -E 'libcuda|libcudart|libnv' || fail "$plugin needs the vendor's libraries to load"
  answers cuda 'cudaGetDeviceCount: .*cudaError|no code for sm_'
  objcopy -O binary --only-section=.nv_fatbin "$plugin" "$work/cuda"
  code_in "$work/cuda" >"$work/cuda.list"
  IFS=';' read -ra architectures <<<"$(cached QUIRE_CUDA_ARCHITECTURES)"
  for architecture in "${architectures[@]}"; do
    number=${architecture%%[!0-9]*}
    kinds="elf ptx"
    case $architecture in *-real) kinds=elf ;; *-virtual) kinds=ptx ;; esac
    for kind in $kinds; do
      has=$(grep -c "^$kind $number$" "$work/cuda.list" || true)
      [ "$has" -eq "$kernels" ] || fail "$kind of architecture $number in $has of $kernels kernel files"
    done
  done
  found+=" cuda"
else
  left+=" cuda (not built: no nvcc);"
fi

plugin=$build/lib/quire/backends/quire_hip.so
if [ -f "$plugin" ]; then
  exports_one_symbol "$plugin" || fail "$plugin exports: $(nm -D --defined-only "$plugin")"
  needs "$plugin" | grep -q '^libamdhip64' || fail "$plugin does not name HIP's runtime"
  answers hip 'hipGetDeviceCount: .*hipError|no code for gfx'
  # The bundles' names stand in the section as text, an entry per architecture and kernel file.
  objcopy -O binary --only-section=.hip_fatbin "$plugin" "$work/hip"
  IFS=';' read -ra architectures <<<"$(cached QUIRE_HIP_ARCHITECTURES)"
  for architecture in "${architectures[@]}"; do
    has=$(grep -a -o "hipv4-amdgcn-amd-amdhsa--$architecture" "$work/hip" | wc -l)
    [ "$has" -eq "$kernels" ] || fail "code for $architecture of $has of $kernels kernel files"
  done
  found+=" hip"
else
  left+=" hip (not built: no clang for HIP, or no libamdhip64);"
fi

if [ -z "$found" ]; then
  echo "neither plugin was built:${left%;}"
  exit 77
fi
echo "one symbol, code for every architecture, an answer without a device:$found${left:+; left out:${left%;}}"
