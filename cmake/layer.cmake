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
if(ARGOSY_SANITIZE)
  target_compile_options(argosy_options INTERFACE
    -fsanitize=${ARGOSY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(argosy_options INTERFACE -fsanitize=${ARGOSY_SANITIZE})
endif()
if(ARGOSY_FUZZERS)
  # Coverage of the libraries, which is what the fuzzers steer by.
  target_compile_options(argosy_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(ARGOSY_PRECOMPILED_HEADERS)
  # What nearly every file includes. Without the time in it, ccache knows a header that was compiled again. Warnings about
  # the standard library's own code come back with it.
  target_precompile_headers(argosy_options INTERFACE
    <algorithm> <filesystem> <functional> <map> <memory> <optional> <set> <string> <unordered_map> <vector>
    <fmt/format.h> <tl/expected.hpp>)
  target_compile_options(argosy_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp" -Wno-deprecated-declarations)
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
  if(ARGOSY_DEVELOPER_MODE AND layer_TESTS)
    add_executable(argosy_${name}_test ${layer_TESTS})
    target_link_libraries(argosy_${name}_test PRIVATE argosy_${name} GTest::gtest GTest::gtest_main)
    if(ARGOSY_PRECOMPILED_HEADERS)
      target_precompile_headers(argosy_${name}_test PRIVATE <gtest/gtest.h>)
    endif()
    add_test(NAME ${name} COMMAND argosy_${name}_test)
  endif()
endfunction()
