# One CMake target per layer. Options that every target of ours shares hang on argosy_options.
add_library(argosy_options INTERFACE)
# Nothing of it concerns users of an installed library.
target_include_directories(argosy_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
if(ARGOSY_DEVELOPER_MODE)
  target_compile_options(argosy_options INTERFACE
    $<BUILD_INTERFACE:-Wall> $<BUILD_INTERFACE:-Wextra> $<BUILD_INTERFACE:-Wpedantic> $<BUILD_INTERFACE:-Wshadow>
    $<BUILD_INTERFACE:-Wno-missing-field-initializers>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Errors with the compiler whose warnings we know. The last four are false alarms of GCC 12 inside the standard library
    # when it optimises.
    target_compile_options(argosy_options INTERFACE
      $<BUILD_INTERFACE:-Werror> $<BUILD_INTERFACE:-Wno-restrict> $<BUILD_INTERFACE:-Wno-maybe-uninitialized>
      $<BUILD_INTERFACE:-Wno-stringop-overflow> $<BUILD_INTERFACE:-Wno-array-bounds>)
  endif()
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC takes files that are built together for headers, whose types should not be of one file only.
  target_compile_options(argosy_options INTERFACE $<BUILD_INTERFACE:-Wno-subobject-linkage>)
  # Large units need memory anyway: looking for some that is free takes a tenth of the time.
  target_compile_options(argosy_options INTERFACE
    $<BUILD_INTERFACE:SHELL:--param=ggc-min-expand=400> $<BUILD_INTERFACE:SHELL:--param=ggc-min-heapsize=400000>)
endif()
if(ARGOSY_SANITIZE)
  target_compile_options(argosy_options INTERFACE
    -fsanitize=${ARGOSY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(argosy_options INTERFACE -fsanitize=${ARGOSY_SANITIZE})
endif()
# Under sanitizers half of the time of a build goes into optimising what they add. These layers are worth it: their tests
# and fuzzers compute much.
set(ARGOSY_COMPUTING_FLAGS "" CACHE STRING "Further options of the layers that compute much, as in -O1")
set(argosy_computing_layers base tensor io ir)
# Coverage of these layers is what the fuzzers steer by. Counting it takes a third of the time of a build under sanitizers: the
# others go without.
set(argosy_fuzzed_layers base tensor io ir frontends executorch)
if(ARGOSY_PRECOMPILED_HEADERS)
  # Without the time in it, ccache knows a header that was compiled again. Warnings about the standard library's own code
  # come back with it.
  target_compile_options(argosy_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp" -Wno-deprecated-declarations)
  if(ARGOSY_DEVELOPER_MODE)
    # What nearly every test includes, compiled once for all of them: once for the layers that compute much, once for the
    # others. Layers are built in a few large units, which it would not make faster.
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cpp CONTENT "int main() {}\n")
    foreach(headers argosy_test_headers argosy_computing_test_headers)
      add_executable(${headers} ${PROJECT_BINARY_DIR}/test_headers.cpp)  # compiled like tests, which are programs
      target_link_libraries(${headers} PRIVATE argosy_options fmt::fmt GTest::gtest)
      target_precompile_headers(${headers} PRIVATE
        <algorithm> <filesystem> <functional> <map> <memory> <optional> <set> <string> <unordered_map> <vector>
        <fmt/format.h> <gtest/gtest.h> <tl/expected.hpp>)
    endforeach()
    target_compile_options(argosy_computing_test_headers PRIVATE ${ARGOSY_COMPUTING_FLAGS})
  endif()
endif()

# argosy_layer(name SOURCES … [DEPENDS …] [PRIVATE …] [TESTS …])
#   builds the static library argosy_<name>; with TESTS and in developer mode also argosy_<name>_test, known to ctest.
#   DEPENDS are layers below (names without the prefix), PRIVATE other libraries that stay out of our headers.
function(argosy_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "SOURCES;DEPENDS;PRIVATE;TESTS")
  add_library(argosy_${name} STATIC ${layer_SOURCES})
  target_link_libraries(argosy_${name} PUBLIC argosy_options)
  foreach(below IN LISTS layer_DEPENDS)
    target_link_libraries(argosy_${name} PUBLIC argosy_${below})
  endforeach()
  target_link_libraries(argosy_${name} PRIVATE ${layer_PRIVATE})
  set(flags "")
  set(test_headers argosy_test_headers)
  if(name IN_LIST argosy_computing_layers)
    set(flags ${ARGOSY_COMPUTING_FLAGS})
    set(test_headers argosy_computing_test_headers)
  endif()
  target_compile_options(argosy_${name} PRIVATE ${flags})
  if(ARGOSY_FUZZERS AND name IN_LIST argosy_fuzzed_layers)
    target_compile_options(argosy_${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(ARGOSY_DEVELOPER_MODE AND layer_TESTS)
    add_executable(argosy_${name}_test ${layer_TESTS})
    target_link_libraries(argosy_${name}_test PRIVATE argosy_${name} GTest::gtest GTest::gtest_main)
    # Tests share many names of helpers, and each file is built alone.
    set_target_properties(argosy_${name}_test PROPERTIES UNITY_BUILD OFF)
    target_compile_options(argosy_${name}_test PRIVATE ${flags})
    if(ARGOSY_PRECOMPILED_HEADERS)
      target_precompile_headers(argosy_${name}_test REUSE_FROM ${test_headers})
    endif()
    add_test(NAME ${name} COMMAND argosy_${name}_test)
  endif()
endfunction()
