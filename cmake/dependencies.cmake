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
# The compiler has to be of the headers' version: the one beside them, not the one that Python's executorch brings along.
find_program(ARGOSY_FLATC flatc HINTS "${FLATBUFFERS_INCLUDE_DIR}/../bin" NO_DEFAULT_PATH)
find_program(ARGOSY_FLATC flatc REQUIRED)
set(ARGOSY_EXECUTORCH "" CACHE PATH "Folder of the Python package executorch; empty: the one that Python finds")
if(NOT ARGOSY_EXECUTORCH)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "import importlib.util as u; print(u.find_spec('executorch').submodule_search_locations[0])"
    OUTPUT_VARIABLE executorch_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE executorch_missing)
  if(executorch_missing)
    message(FATAL_ERROR "The Python package executorch is not installed for ${Python_EXECUTABLE}. Activate the environment that tools/setup installed it into and configure again with cmake --fresh; if there is none, run tools/setup.")
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
  # The file gets a name that tells what it is of. One after the other: they include each other, and a file is not to be
  # read while it is copied.
  add_custom_command(OUTPUT "${header}"
    COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${executorch_folder}/${schema}.fbs" "${executorch_schemas}/${name}.fbs"
    COMMAND "${ARGOSY_FLATC}" --cpp --cpp-std c++17 --scoped-enums -I "${executorch_folder}/schema" -o "${executorch_schemas}" "${executorch_schemas}/${name}.fbs"
    DEPENDS "${executorch_folder}/${schema}.fbs" ${executorch_headers} VERBATIM)
  list(APPEND executorch_headers "${header}")
endforeach()

# The names of the runtime's kernels, as its own registry lists them: a program linked with its libraries prints them. It
# is not of our options (no sanitizers), and gets these libraries whole although it calls nothing in them.
add_executable(argosy_list_kernels EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/list_kernels.cpp")
target_include_directories(argosy_list_kernels SYSTEM PRIVATE
  "${executorch_folder}/include" "${executorch_folder}/include/executorch/runtime/core/portable_type/c10")
target_compile_definitions(argosy_list_kernels PRIVATE C10_USING_CUSTOM_GENERATED_MACROS)
set(executorch_libraries)
foreach(library executorch executorch_kernels_optimized executorch_kernels_quantized)
  list(APPEND executorch_libraries "${executorch_folder}/lib/lib${library}.so")
endforeach()
target_link_libraries(argosy_list_kernels PRIVATE -Wl,--no-as-needed ${executorch_libraries})
# What these libraries need in turn is found when they are loaded.
target_link_options(argosy_list_kernels PRIVATE -Wl,--allow-shlib-undefined)
set_target_properties(argosy_list_kernels PROPERTIES BUILD_RPATH "${executorch_folder}/lib")
set(executorch_kernel_list "${executorch_schemas}/kernel_list_generated.h")
add_custom_command(OUTPUT "${executorch_kernel_list}"
  COMMAND argosy_list_kernels > "${executorch_kernel_list}"
  DEPENDS argosy_list_kernels ${executorch_libraries} VERBATIM)
list(APPEND executorch_headers "${executorch_kernel_list}")

add_custom_target(argosy_executorch_headers DEPENDS ${executorch_headers})
add_library(argosy_flatbuffers INTERFACE)
target_include_directories(argosy_flatbuffers SYSTEM INTERFACE
  $<BUILD_INTERFACE:${executorch_schemas}> $<BUILD_INTERFACE:${FLATBUFFERS_INCLUDE_DIR}>)
add_dependencies(argosy_flatbuffers argosy_executorch_headers)
