#!/usr/bin/env bash
# Installs what building Quire needs on Debian 12, Ubuntu 24.04 and newer; asks for root only when something is missing.
# Usage: tools/setup.sh [--tests] [--gpu]   (--tests: also what the whole test run uses; --gpu: also what the plugins cuda and hip are built
# with, as far as Debian has it: what it has not is named, and they are left out)
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config ccache libeigen3-dev libtbb-dev libfmt-dev nlohmann-json3-dev libcli11-dev libdlpack-dev libboost-context-dev zlib1g-dev)
gpu=
for option in "$@"; do
  case $option in
    --tests) packages+=(doctest-dev libmpfr-dev libgmp-dev libbenchmark-dev clang qemu-user g++-aarch64-linux-gnu python3) ;;
    --gpu) gpu=1 ;;
    *) echo "tools/setup.sh: $option: unknown; allowed: --tests, --gpu" >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query >/dev/null; then
  echo "tools/setup.sh: no dpkg here. Install the equivalents of: ${packages[*]}" >&2
  exit 1
fi

is_installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q "install ok installed"; }
is_known() { apt-cache show "$1" >/dev/null 2>&1; }
missing_of() {
  local package
  for package in "$@"; do is_installed "$package" || printf '%s ' "$package"; done
}
as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
has_root() { [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null; }
is_updated=
update() {
  [ -z "$is_updated" ] || return 0
  "${as_root[@]}" apt-get update -qq && is_updated=1
}
install() { "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
export DEBIAN_FRONTEND=noninteractive

read -ra missing <<<"$(missing_of "${packages[@]}")"
if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing ${missing[*]}"
  has_root || { echo "tools/setup.sh: needs root to install; run as root: apt-get install ${missing[*]}" >&2; exit 1; }
  update
  install "${missing[@]}"
fi

# HIP's packages: the compiler, its offload tools and its linker of one version, the runtime and the device libraries. A plugin more or
# less is no reason to fail: each way out is one line.
hip_packages() {
  local version libraries
  for version in 19 20 21 18 17; do
    for libraries in rocm-device-libs "rocm-device-libs-$version"; do
      if is_known "clang-$version" && is_known "lld-$version" && is_known "$libraries" && is_known libamdhip64-dev; then
        echo "clang-$version clang-tools-$version lld-$version libamdhip64-dev $libraries"
        return
      fi
    done
  done
}
setup_hip() {
  if [ -d "${ROCM_PATH:-/opt/rocm}" ]; then
    echo "setup: HIP: ROCm in ${ROCM_PATH:-/opt/rocm}"
    return
  fi
  local wanted absent
  wanted=$(hip_packages)
  if [ -z "$wanted" ] && has_root; then
    update || true
    wanted=$(hip_packages)
  fi
  if [ -z "$wanted" ]; then
    echo "setup: HIP: no packages for it here (clang, lld, libamdhip64-dev, rocm-device-libs), so no hip plugin"
    return
  fi
  # shellcheck disable=SC2086
  absent=$(missing_of $wanted)
  if [ -n "$absent" ]; then
    # shellcheck disable=SC2086
    if ! has_root || ! update || ! install $absent; then
      echo "setup: HIP: can't install ${absent% }, so no hip plugin"
      return
    fi
  fi
  echo "setup: HIP: ${wanted%% *} and libamdhip64 $(dpkg-query -W -f='${Version}' libamdhip64-dev)"
}
# CUDA is no Debian package that everybody may have: what is there is used.
setup_cuda() {
  local nvcc
  nvcc=$(command -v nvcc || ls "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" 2>/dev/null || true)
  if [ -n "$nvcc" ]; then
    echo "setup: CUDA: $nvcc, $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/release \1/p')"
  else
    echo "setup: CUDA: no nvcc on the PATH or in /usr/local/cuda, so no cuda plugin"
  fi
}
if [ -n "$gpu" ]; then
  setup_hip
  setup_cuda
fi
echo "setup: done"
