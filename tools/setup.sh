#!/usr/bin/env bash
# Installs what building Quire needs on Debian 12, Ubuntu 24.04 and newer; asks for root only when something is missing.
# Usage: tools/setup.sh [--tests]   (--tests: also what the whole test run uses)
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config ccache libeigen3-dev libtbb-dev libfmt-dev nlohmann-json3-dev libcli11-dev libdlpack-dev libboost-context-dev zlib1g-dev)
if [ "${1:-}" = "--tests" ]; then
  packages+=(doctest-dev libmpfr-dev libgmp-dev libbenchmark-dev clang qemu-user g++-aarch64-linux-gnu python3)
elif [ $# -gt 0 ]; then
  echo "tools/setup.sh: $1: unknown; allowed: --tests" >&2
  exit 2
fi

if ! command -v dpkg-query >/dev/null; then
  echo "tools/setup.sh: no dpkg here. Install the equivalents of: ${packages[*]}" >&2
  exit 1
fi
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "install ok installed" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: everything is installed"
  exit 0
fi
echo "setup: installing ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "tools/setup.sh: needs root to install; run as root: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "setup: done"
