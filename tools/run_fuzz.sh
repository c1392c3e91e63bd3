#!/usr/bin/env bash
# Builds the fuzz targets and runs each for some seconds; findings land in build-fuzz/findings.
#
# Usage: tools/run_fuzz.sh [SECONDS] [JOBS]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
jobs=${2:-$(nproc)}

cmake --preset fuzz
targets=$(ninja -C build-fuzz -t targets all | sed -n 's/^\([a-z_]*_fuzz\): phony$/\1/p' | sort -u)
if [ -z "$targets" ]; then
  echo "run_fuzz: tests/fuzz has no target" >&2
  exit 1
fi
# shellcheck disable=SC2086
ninja -j "$jobs" -C build-fuzz $targets
mkdir -p build-fuzz/findings
for target in $targets; do
  program=$(find build-fuzz -type f -name "$target" -perm -u+x | head -n 1)
  mkdir -p "build-fuzz/corpus/$target"
  options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0)
  options+=(-artifact_prefix="build-fuzz/findings/$target-")
  dictionary=tests/fuzz/${target%_fuzz}.dict
  [ -f "$dictionary" ] && options+=(-dict="$dictionary")
  corpora=("build-fuzz/corpus/$target") # new inputs go to the first
  [ "$target" = recipe_fuzz ] && corpora+=(examples/recipes)
  echo "run_fuzz: $target for $seconds s"
  "$program" "${options[@]}" "${corpora[@]}"
done
