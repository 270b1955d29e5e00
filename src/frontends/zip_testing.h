#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "io/zip.h"

namespace argosy {

using ZipEntries = std::vector<std::pair<std::string, std::string>>;

/// A path of its own for the running test.
inline std::filesystem::path test_file(std::string_view extension) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return std::filesystem::path(testing::TempDir()) /
         (std::string(test->test_suite_name()) + "_" + test->name() + std::string(extension));
}

inline void write_zip(const std::filesystem::path& path, const ZipEntries& entries) {
  std::ofstream file(path, std::ios::binary);
  ZipWriter zip([&](std::span<const std::byte> bytes) -> Status {
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return {};
  });
  for (const auto& [name, text] : entries) ASSERT_TRUE(zip.add(name, text).has_value());
  ASSERT_TRUE(zip.finish().has_value());
}

/// The entries of a zip, to be changed and written again.
inline ZipEntries read_zip(const std::filesystem::path& path) {
  ZipEntries entries;
  Result<ZipReader> zip = ZipReader::open(path);
  EXPECT_TRUE(zip.has_value()) << (zip ? "" : to_text(zip.error()));
  if (!zip) return entries;
  for (const ZipEntry& entry : zip->entries()) entries.emplace_back(entry.name, zip->read(entry).value_or(""));
  return entries;
}

inline std::string& entry(ZipEntries& entries, std::string_view name) {
  for (auto& [entry_name, text] : entries) {
    if (entry_name == name) return text;
  }
  ADD_FAILURE() << "no entry " << name;
  return entries.front().second;
}

inline void replace(std::string& text, std::string_view what, std::string_view with) {
  size_t at = text.find(what);
  ASSERT_NE(at, std::string::npos) << what;
  text.replace(at, what.size(), with);
}

}  // namespace argosy
