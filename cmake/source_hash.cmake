# Writes a header with a hash of everything that decides what an export writes and how it is checked: a check that passed is
# remembered for it. Run as a script: cmake -DROOT=… -DLIST=… -DOUTPUT=… -P source_hash.cmake
file(STRINGS "${LIST}" files)
set(text "")
foreach(file IN LISTS files)
  file(SHA256 "${ROOT}/${file}" hash)
  string(APPEND text "${file} ${hash}\n")
endforeach()
string(SHA256 hash "${text}")
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT "#pragma once

inline constexpr char kSourceHash[] = \"@hash@\";
")
