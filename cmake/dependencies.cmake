# Third-party code, each for one job and one layer (docs/decisions/0001-dependencies.md).
find_package(fmt 9 REQUIRED)        # text, in base
find_package(simdjson REQUIRED)     # JSON reading, in io
find_package(ZLIB REQUIRED)         # CRC-32 of zip entries, in io
find_package(CLI11 REQUIRED)        # command line, in apps/cli
find_package(tl-expected REQUIRED)  # results, in base
find_package(Threads REQUIRED)

# protozero (ONNX files, in io) is header-only and ships no CMake package on Debian.
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp REQUIRED)
add_library(argosy_protozero INTERFACE)
target_include_directories(argosy_protozero SYSTEM INTERFACE $<BUILD_INTERFACE:${PROTOZERO_INCLUDE_DIR}>)

if(ARGOSY_DEVELOPER_MODE)
  find_package(GTest REQUIRED)
endif()
