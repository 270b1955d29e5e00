# Third-party code from the folder ARGOSY_THIRD_PARTY, under the names that the system's packages have. Nothing of it is seen
# from outside: symbols are hidden, as ours are.
enable_language(C)
set(headers "${ARGOSY_THIRD_PARTY}/include")
set(PROTOZERO_INCLUDE_DIR "${headers}")
set(FLATBUFFERS_INCLUDE_DIR "${headers}")
set(TL_EXPECTED_INCLUDE_DIR "${headers}")

function(argosy_third_party name public_name)
  cmake_parse_arguments(PARSE_ARGV 2 part "" "" "SOURCES;INCLUDES")
  set(scope INTERFACE)
  if(part_SOURCES)
    set(scope PUBLIC)
    list(TRANSFORM part_SOURCES PREPEND "${ARGOSY_THIRD_PARTY}/")
    add_library(${name} STATIC ${part_SOURCES})
    target_compile_options(${name} PRIVATE -w ${ARGOSY_COMPUTING_FLAGS})
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF C_VISIBILITY_PRESET hidden)
  else()
    add_library(${name} INTERFACE)
  endif()
  list(TRANSFORM part_INCLUDES PREPEND "${ARGOSY_THIRD_PARTY}/")
  foreach(folder "${headers}" ${part_INCLUDES})
    target_include_directories(${name} SYSTEM ${scope} $<BUILD_INTERFACE:${folder}>)
  endforeach()
  add_library(${public_name} ALIAS ${name})
  set_property(GLOBAL APPEND PROPERTY argosy_third_party_targets ${name})
endfunction()

argosy_third_party(argosy_fmt fmt::fmt SOURCES fmt/src/format.cc)
argosy_third_party(argosy_simdjson simdjson::simdjson SOURCES simdjson/simdjson.cpp INCLUDES simdjson)
argosy_third_party(argosy_zlib ZLIB::ZLIB SOURCES zlib/crc32.c INCLUDES zlib)  # its checksum is all that is used
# Of libsodium only signatures by ed25519, and what these need.
set(sodium_sources crypto_core/ed25519/ref10/ed25519_ref10.c crypto_hash/sha512/cp/hash_sha512_cp.c crypto_hash/sha512/hash_sha512.c
  crypto_sign/crypto_sign.c crypto_sign/ed25519/ref10/keypair.c crypto_sign/ed25519/ref10/open.c
  crypto_sign/ed25519/ref10/sign.c crypto_sign/ed25519/sign_ed25519.c crypto_verify/sodium/verify.c sodium/utils.c)
list(TRANSFORM sodium_sources PREPEND sodium/)
argosy_third_party(argosy_sodium sodium::sodium SOURCES ${sodium_sources} INCLUDES sodium/include sodium/include/sodium)
target_sources(argosy_sodium PRIVATE "${CMAKE_CURRENT_LIST_DIR}/sodium_needs.c")
target_compile_definitions(argosy_sodium PRIVATE CONFIGURED=1 DEV_MODE=0 NATIVE_LITTLE_ENDIAN=1 HAVE_TI_MODE=1)
argosy_third_party(argosy_cli11 CLI11::CLI11)
argosy_third_party(argosy_tl_expected tl::expected)
# Our own public headers include this one.
target_include_directories(argosy_tl_expected INTERFACE $<INSTALL_INTERFACE:include/argosy/third_party>)
install(DIRECTORY "${headers}/tl" DESTINATION include/argosy/third_party COMPONENT development)
