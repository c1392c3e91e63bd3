#!/usr/bin/env bash
# Builds the unit and contract suites with one of the sanitizer presets (asan, tsan) and runs them.
#
# Usage: tools/check_sanitized.sh PRESET [JOBS]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
jobs=${2:-$(nproc)}

cmake --preset "$preset"
# A ctest entry unit.base is the program unit_base; the programs of other suites are not worth their build time here.
programs=$(ctest --preset "$preset" -N | sed -n 's/^ *Test *#[0-9]*: \([a-z]*\)\.\([a-z_]*\)$/\1_\2/p')
if [ -z "$programs" ]; then
  echo "check_sanitized: preset $preset has no unit or contract program" >&2
  exit 1
fi
# shellcheck disable=SC2086
ninja -j "$jobs" -C "build-$preset" $programs
# The thread sanitizer of g++ 12 refuses the address layouts that newer kernels make at random.
fixed_layout=()
[ "$preset" = tsan ] && setarch -R true 2> /dev/null && fixed_layout=(setarch -R)
"${fixed_layout[@]}" ctest --preset "$preset" -j 2
