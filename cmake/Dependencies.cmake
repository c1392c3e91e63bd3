# Everything that Convoy takes from elsewhere, and the flags that all of its code is compiled with.

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
# Authenticates the job's store. Linked statically: the command uses a few functions of it and starts in milliseconds.
find_path(SODIUM_INCLUDE sodium.h REQUIRED)
find_library(SODIUM_LIBRARY NAMES libsodium.a sodium REQUIRED)

# The vectors that reductions compute with, and the choice of instruction set while the program runs.
find_package(HWY REQUIRED)

# Sockets between hosts; without it, stubs named *_unavailable.cpp stand in.
find_path(GLOO_INCLUDE gloo/transport/tcp/device.h)
find_library(GLOO_LIBRARY gloo)
set(CONVOY_COMM_LIBRARIES ${SODIUM_LIBRARY} hwy::hwy)
if(GLOO_INCLUDE AND GLOO_LIBRARY)
  set(CONVOY_LEFT_OUT "/gloo_[a-z_]*unavailable\\.cpp$")
  # A program that never joins a group does not load Gloo: it drags in the libraries of InfiniBand and Redis.
  list(APPEND CONVOY_COMM_LIBRARIES "-Wl,--push-state,--as-needed,${GLOO_LIBRARY},--pop-state")
else()
  set(CONVOY_LEFT_OUT "/gloo_(link|peer)\\.cpp$")
endif()
# Ranks under mpirun (transport openmpi), and Open MPI's own collectives, which `convoy bench --peers` measures beside
# ours; without it, stubs stand in here too.
find_package(MPI QUIET COMPONENTS C)
set(CONVOY_BENCH_LIBRARIES nlohmann_json::nlohmann_json)
if(GLOO_INCLUDE AND GLOO_LIBRARY)
  list(APPEND CONVOY_BENCH_LIBRARIES ${GLOO_LIBRARY})
endif()
if(MPI_C_FOUND)
  string(APPEND CONVOY_LEFT_OUT "|/mpi_[a-z_]*unavailable\\.cpp$")
  list(APPEND CONVOY_BENCH_LIBRARIES MPI::MPI_C)
  add_library(convoy_openmpi INTERFACE)
  target_include_directories(convoy_openmpi SYSTEM INTERFACE ${MPI_C_INCLUDE_DIRS})
  string(JOIN "," CONVOY_MPI_LIBRARIES ${MPI_C_LIBRARIES})
  target_link_libraries(convoy_openmpi INTERFACE "-Wl,--push-state,--as-needed,${CONVOY_MPI_LIBRARIES},--pop-state")
  list(APPEND CONVOY_COMM_LIBRARIES convoy_openmpi)
else()
  string(APPEND CONVOY_LEFT_OUT "|/mpi_(link|peer|process)\\.cpp$")
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # The precompiled libtorch header is the same for all files; without these, ccache would refuse each of them.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
endif()

add_library(convoy_flags INTERFACE)
# -ffp-contract=off: a fused multiply-add rounds once where a product and a sum round twice, so a result would depend
# on the instruction set that a loop was compiled for.
target_compile_options(convoy_flags INTERFACE -Wall -Wextra -Wpedantic -Werror -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # -Wrestrict fires on std::string in g++ 12 where nothing overlaps (GCC bug 105651).
  target_compile_options(convoy_flags INTERFACE -Wno-error=maybe-uninitialized -Wno-restrict -fpch-preprocess)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(convoy_flags INTERFACE -Wthread-safety)
endif()
target_link_libraries(convoy_flags INTERFACE Threads::Threads)
if(CONVOY_SANITIZE)
  add_compile_options(-fsanitize=${CONVOY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CONVOY_SANITIZE})
  target_compile_definitions(convoy_flags INTERFACE CONVOY_SANITIZED)
endif()

if(CONVOY_TORCH)
  # Debian's package says where libtorch is through its own cmake files; two headers' worth of facts are all we need.
  find_path(TORCH_INCLUDE torch/torch.h PATH_SUFFIXES torch/csrc/api/include REQUIRED)
  find_path(ATEN_INCLUDE ATen/ATen.h REQUIRED)
  find_library(TORCH_LIBRARY torch REQUIRED)
  find_library(TORCH_CPU_LIBRARY torch_cpu REQUIRED)
  find_library(C10_LIBRARY c10 REQUIRED)
  add_library(convoy_torch INTERFACE)
  target_include_directories(convoy_torch SYSTEM INTERFACE ${TORCH_INCLUDE} ${ATEN_INCLUDE})
  target_link_libraries(convoy_torch INTERFACE ${TORCH_LIBRARY} ${TORCH_CPU_LIBRARY} ${C10_LIBRARY})
  # One precompiled header that every libtorch module reuses.
  add_library(convoy_torch_pch OBJECT ${CMAKE_SOURCE_DIR}/cmake/torch_pch.cpp)
  target_link_libraries(convoy_torch_pch PRIVATE convoy_flags convoy_torch)
  target_precompile_headers(convoy_torch_pch PRIVATE <torch/torch.h>)
endif()
