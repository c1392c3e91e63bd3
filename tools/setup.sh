#!/usr/bin/env bash
# Installs the Debian packages that building Convoy needs, only those that are missing.
#
# Usage: tools/setup.sh [run|test|bench|dev|format|all]...     (default: run)
#   run    build and run: compiler, cmake, libtorch with OpenBLAS, the small libraries, the data set
#   test   run, and what the tests need
#   bench  run, and what the benchmarks need
#   peers  run, and PyTorch for `make bench-peers`
#   dev    test, and clang with tidy, lock analysis and fuzzing
#   format only clang-format
#   all    everything
# Exit status: 0 all is there; 1 the installation failed; 2 no right to install (the one line to run is printed).
set -euo pipefail

run_packages=(
  g++ make cmake ninja-build ccache python3
  libtorch-dev libopenblas0-pthread # without OpenBLAS, libtorch falls back to a BLAS that is 50 times slower
  libtomlplusplus-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libxxhash-dev libcli11-dev zlib1g-dev
  libgloo-dev libsodium-dev # sockets between hosts; who may use a job's store
  libhwy-dev # the vectors that reductions compute with
  dataset-fashion-mnist
)
mpi_packages=(libopenmpi-dev openmpi-bin) # the transport openmpi, and `convoy bench --peers`; without it stubs stand in
test_packages=(libgtest-dev libgmock-dev librapidcheck-dev iproute2 "${mpi_packages[@]}") # iproute2: network namespaces
bench_packages=(libbenchmark-dev "${mpi_packages[@]}")
peers_packages=(python3-torch) # Debian's PyTorch, which the benchmark of data parallel runs beside us
dev_packages=(clang-14 clang-tidy-14 libclang-rt-14-dev)
format_packages=(clang-format-14)

wanted=()
for group in "${@:-run}"; do
  case "$group" in
    run) wanted+=("${run_packages[@]}") ;;
    test) wanted+=("${run_packages[@]}" "${test_packages[@]}") ;;
    bench) wanted+=("${run_packages[@]}" "${bench_packages[@]}") ;;
    peers) wanted+=("${run_packages[@]}" "${peers_packages[@]}") ;;
    dev) wanted+=("${run_packages[@]}" "${test_packages[@]}" "${dev_packages[@]}") ;;
    format) wanted+=("${format_packages[@]}") ;;
    all)
      wanted+=("${run_packages[@]}" "${test_packages[@]}" "${bench_packages[@]}" "${dev_packages[@]}")
      wanted+=("${peers_packages[@]}" "${format_packages[@]}")
      ;;
    *)
      echo "setup: no group '$group'; there are run, test, bench, peers, dev, format and all" >&2
      exit 2
      ;;
  esac
done

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "setup: not a Debian system: install what these packages hold, then run make with SETUP=true: ${wanted[*]}" >&2
  exit 2
fi

# dpkg-query fails when it has never heard of a package; its list of the others is right all the same.
installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${wanted[@]}" 2> /dev/null | sed -n 's/^.i *//p') || true
missing=()
for package in "${wanted[@]}"; do
  grep -qxF -- "$package" <<< "$installed" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! sudo -n true 2> /dev/null; then
    echo "setup: packages are missing and this user may not install them; run this line, then try again:" >&2
    echo "sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
    exit 2
  fi
  as_root=(sudo -n)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "setup: installing ${missing[*]}" >&2
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3
  -o Dpkg::Use-Pty=0)
if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } < /dev/null > "$log" 2>&1; then
  cat "$log" >&2
  echo "setup: the installation failed (above is what apt-get said)" >&2
  exit 1
fi
