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

# ExecuTorch's formats (in backends/executorch): flatbuffers of schemas that its Python package carries.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
find_path(FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h REQUIRED)
find_program(FLATC flatc REQUIRED)
set(ARGOSY_EXECUTORCH "" CACHE PATH "Folder of the Python package executorch; empty: the one that Python finds")
if(NOT ARGOSY_EXECUTORCH)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "import importlib.util as u; print(u.find_spec('executorch').submodule_search_locations[0])"
    OUTPUT_VARIABLE executorch_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE executorch_missing)
  if(executorch_missing)
    message(FATAL_ERROR "The Python package executorch is not installed for ${Python_EXECUTABLE}; run tools/setup.")
  endif()
else()
  set(executorch_folder "${ARGOSY_EXECUTORCH}")
endif()
set(executorch_schemas "${PROJECT_BINARY_DIR}/executorch_schemas")
set(executorch_headers)
foreach(schema schema/scalar_type schema/program backends/xnnpack/serialization/schema
               extension/flat_tensor/serialize/flat_tensor)
  get_filename_component(name "${schema}" NAME)
  if(schema STREQUAL "backends/xnnpack/serialization/schema")
    set(name xnnpack)
  endif()
  set(header "${executorch_schemas}/${name}_generated.h")
  # The file gets a name that tells what it is of.
  add_custom_command(OUTPUT "${header}"
    COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${executorch_folder}/${schema}.fbs" "${executorch_schemas}/${name}.fbs"
    COMMAND "${FLATC}" --cpp --cpp-std c++17 --scoped-enums -I "${executorch_folder}/schema" -o "${executorch_schemas}" "${executorch_schemas}/${name}.fbs"
    DEPENDS "${executorch_folder}/${schema}.fbs" VERBATIM)
  list(APPEND executorch_headers "${header}")
endforeach()
add_custom_target(argosy_executorch_headers DEPENDS ${executorch_headers})
add_library(argosy_flatbuffers INTERFACE)
target_include_directories(argosy_flatbuffers SYSTEM INTERFACE
  $<BUILD_INTERFACE:${executorch_schemas}> $<BUILD_INTERFACE:${FLATBUFFERS_INCLUDE_DIR}>)
add_dependencies(argosy_flatbuffers argosy_executorch_headers)
