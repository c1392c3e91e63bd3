# The commands of Convoy, for a fresh Debian 12 machine and for every day after. `make help` lists them.

SETUP ?= tools/setup.sh
BUILD := build
# One compiler for each processor, and no more than there are 2 GB of memory for.
JOBS ?= $(shell awk -v n="$$(nproc)" '/^MemAvailable/ {m = int($$2 / 2000000) + 1; print m < n ? m : n}' /proc/meminfo)
TEST_JOBS ?= 2
# Options for `convoy run` (make run), for ctest (make test) and for the benchmark programs (make bench).
RUN_ARGS ?=
TEST_ARGS ?=
BENCH_ARGS ?=
# How long each fuzz target runs, in seconds.
FUZZ_SECONDS ?= 60

NINJA := ninja -j $(JOBS)
# Turns an option of the one build folder on, or makes the folder. The other options stay as they are, so nothing is
# compiled twice when run, test and bench take turns.
define configure
@if [ ! -f $(BUILD)/build.ninja ]; then cmake --preset release -D$(1)=ON; \
elif ! grep -q '^$(1):BOOL=ON' $(BUILD)/CMakeCache.txt; then cmake $(BUILD) -D$(1)=ON; fi
endef

.DEFAULT_GOAL := help
.PHONY: help build run test bench bench-peers format asan tsan clang-check fuzz clean

help: ## lists these commands
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|' 2> /dev/null || \
		sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1: \2/p' Makefile

build: ## installs what is missing and builds build/bin/convoy, convoy-rank and convoy-bench
	@$(SETUP) run
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release
	$(NINJA) -C $(BUILD) convoy convoy-rank convoy-bench

run: build ## trains the CNN on Fashion-MNIST on 2 ranks and compares with one (options in RUN_ARGS)
	$(BUILD)/bin/convoy run examples/recipes/fashion_cnn.toml -n 2 --baselines $(RUN_ARGS)

test: ## builds everything and runs all tests (ctest's options in TEST_ARGS)
	@$(SETUP) test
	$(call configure,CONVOY_TESTS)
	$(NINJA) -C $(BUILD)
	ctest --test-dir $(BUILD) --output-on-failure -j $(TEST_JOBS) $(TEST_ARGS)

bench: ## builds and runs the benchmarks (options of Google Benchmark in BENCH_ARGS)
	@$(SETUP) bench
	$(call configure,CONVOY_BENCH)
	$(NINJA) -C $(BUILD) bench_all
	@set -e; for program in $(BUILD)/bench/bench_*; do $$program $(BENCH_ARGS); done

bench-peers: build ## times data parallel beside PyTorch's DDP on Gloo and against one process (options in BENCH_ARGS)
	@$(SETUP) peers
	/usr/bin/python3 bench/peers/bench_peers.py --convoy $(BUILD)/bin/convoy $(BENCH_ARGS)

format: ## formats all C++ files in place
	@$(SETUP) format
	find convoy apps tests examples bench -name '*.h' -o -name '*.cpp' | xargs -r clang-format-14 -i

asan: ## unit and contract suites under the address and undefined-behaviour sanitizers, in build-asan
	@$(SETUP) test
	tools/check_sanitized.sh asan $(JOBS)

tsan: ## unit and contract suites without libtorch under the thread sanitizer, in build-tsan
	@$(SETUP) test
	tools/check_sanitized.sh tsan $(JOBS)

clang-check: ## compiles with clang's lock analysis and clang-tidy, in build-clang
	@$(SETUP) dev
	cmake --preset clang-check
	$(NINJA) -C build-clang

fuzz: ## runs each fuzz target for FUZZ_SECONDS, in build-fuzz
	@$(SETUP) dev
	tools/run_fuzz.sh $(FUZZ_SECONDS) $(JOBS)

clean: ## removes all build folders
	rm -rf build build-dev build-asan build-tsan build-clang build-fuzz
