# Third-party code, each for one job and one layer (docs/decisions/0001-dependencies.md). It comes from packages of the system,
# or is compiled into ours from a folder of sources, which tools/third_party fills: source packages and wheels carry it.
set(default_third_party "")
if(EXISTS "${PROJECT_SOURCE_DIR}/third_party")
  set(default_third_party "${PROJECT_SOURCE_DIR}/third_party")
endif()
set(ARGOSY_THIRD_PARTY "${default_third_party}" CACHE PATH "Folder of third-party sources; empty: packages of the system")

find_package(Threads REQUIRED)
if(ARGOSY_THIRD_PARTY)
  include(cmake/third_party.cmake)
else()
  find_package(fmt 9 REQUIRED)        # text, in base
  find_package(simdjson REQUIRED)     # JSON reading, in io
  find_package(ZLIB REQUIRED)         # CRC-32 of zip entries, in io
  find_package(CLI11 REQUIRED)        # command line, in apps/cli
  find_package(tl-expected REQUIRED)  # results, in base
  find_path(TL_EXPECTED_INCLUDE_DIR tl/expected.hpp REQUIRED)
  find_path(SODIUM_INCLUDE_DIR sodium.h REQUIRED)  # signatures, in registry
  find_library(SODIUM_LIBRARY sodium REQUIRED)
  add_library(sodium::sodium INTERFACE IMPORTED)
  target_include_directories(sodium::sodium INTERFACE "${SODIUM_INCLUDE_DIR}")
  target_link_libraries(sodium::sodium INTERFACE "${SODIUM_LIBRARY}")
  # protozero (ONNX files, in io) and flatbuffers (ExecuTorch's formats, in backends/executorch) are header-only.
  find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp REQUIRED)
  find_path(FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h REQUIRED)
endif()

add_library(argosy_protozero INTERFACE)
target_include_directories(argosy_protozero SYSTEM INTERFACE $<BUILD_INTERFACE:${PROTOZERO_INCLUDE_DIR}>)
add_library(argosy_flatbuffers INTERFACE)
# Its generated headers are tools/write_executorch_headers.py's.
target_include_directories(argosy_flatbuffers SYSTEM INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src/backends/executorch/generated> $<BUILD_INTERFACE:${FLATBUFFERS_INCLUDE_DIR}>)

if(ARGOSY_DEVELOPER_MODE)
  find_package(GTest REQUIRED)
endif()
