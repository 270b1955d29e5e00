#include "io/zip.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"
#include "io/zip_format.h"

namespace argosy {
namespace {

/// An archive as bytes, from (name, contents) pairs; names that end in '*' are streamed.
std::string archive(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string bytes;
  ZipWriter writer([&](std::span<const std::byte> more) -> Status {
    bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
    return {};
  });
  for (auto [name, contents] : entries) {
    Status status;
    if (name.ends_with('*')) {
      name.pop_back();
      auto view = std::as_bytes(std::span(contents));
      auto source = *borrowed(view, DType::kU8, {static_cast<int64_t>(contents.size())}, "x");
      status = writer.add(name, *source, 1 << 16);
    } else {
      status = writer.add(name, contents);
    }
    EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message);
  }
  EXPECT_TRUE(writer.finish().has_value());
  return bytes;
}

Result<ZipReader> open_bytes(const TestFolder& folder, std::string_view bytes) {
  return ZipReader::open(folder.write("test.zip", bytes));
}

/// Changes both the directory's and the header's field: `central` and `local` are positions in those records.
template <class T>
void patch(std::string& bytes, size_t position, T value) {
  std::memcpy(bytes.data() + position, &value, sizeof value);
}
size_t central_of(const std::string& bytes, size_t n = 0) {
  size_t position = bytes.find("PK\x01\x02");
  while (n-- > 0) position = bytes.find("PK\x01\x02", position + 4);
  return position;
}
size_t end_of(const std::string& bytes) { return bytes.rfind("PK\x05\x06"); }

void expect_refused(const std::string& bytes, std::string_view part, ErrorCode code = ErrorCode::kCorruptFile) {
  TestFolder folder;
  expect_error(open_bytes(folder, bytes), code, part);
}

/// Two entries: "a" with 10 bytes, "b" with 5.
std::string two_entries() { return archive({{"a", "0123456789"}, {"b", "hello"}}); }

TEST(Zip, reads_what_it_writes) {
  TestFolder folder;
  std::string large(200000, 'x');
  std::string bytes = archive({{"root/models/model.json", "{}"}, {"root/w*", large}, {"root/empty", ""}, {"é", "e"}});
  auto reader = open_bytes(folder, bytes);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  ASSERT_EQ(reader->entries().size(), 4u);
  for (const ZipEntry& entry : reader->entries()) EXPECT_EQ(entry.offset % 64, 0u) << entry.name;
  EXPECT_EQ(*reader->read(*reader->find("root/models/model.json")), "{}");
  EXPECT_EQ(*reader->read(*reader->find("root/w")), large);
  EXPECT_EQ(*reader->read(*reader->find("root/empty")), "");
  EXPECT_EQ(*reader->read(*reader->find("é")), "e");
  EXPECT_EQ(reader->find("root"), nullptr);
  EXPECT_EQ(bytes, archive({{"root/models/model.json", "{}"}, {"root/w*", large}, {"root/empty", ""}, {"é", "e"}}));
}

TEST(Zip, reads_more_entries_than_16_bits_count) {
  TestFolder folder;
  std::vector<std::pair<std::string, std::string>> entries;
  for (int i = 0; i < 70000; ++i) entries.emplace_back(std::to_string(i), "");
  auto reader = open_bytes(folder, archive(entries));
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_EQ(reader->entries().size(), 70000u);
}

TEST(Zip, reads_an_empty_archive_and_one_with_a_comment) {
  TestFolder folder;
  EXPECT_TRUE(open_bytes(folder, archive({})).has_value());
  std::string bytes = two_entries();
  patch<uint16_t>(bytes, bytes.size() - 2, 7);
  EXPECT_TRUE(open_bytes(folder, bytes + "comment").has_value());
}

TEST(Zip, leaves_out_folders) {
  TestFolder folder;
  std::string bytes = archive({{"a_", ""}, {"b", "x"}});
  for (size_t at = bytes.find("a_"); at != std::string::npos; at = bytes.find("a_")) bytes[at + 1] = '/';
  auto reader = open_bytes(folder, bytes);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_EQ(reader->entries().size(), 1u);
}

TEST(Zip, rejects_what_has_no_end) {
  expect_refused("", "it is empty");
  expect_refused("PK", "does not begin like one");
  expect_refused(std::string(1000, 'x'), "does not begin like one");
  std::string bytes = two_entries();
  expect_refused(bytes.substr(0, 100), "ends after 100 bytes");
  expect_refused(bytes.substr(0, bytes.size() - 1), "its directory is missing");
  expect_refused(bytes + "xyz", "3 bytes follow its end");
  patch<uint16_t>(bytes, bytes.size() - 2, 7);
  expect_refused(bytes + "abcde", "2 bytes are missing at its end");
}

TEST(Zip, rejects_split_archives) {
  std::string bytes = two_entries();
  patch<uint16_t>(bytes, end_of(bytes) + 4, 1);
  expect_refused(bytes, "split archive");
}

TEST(Zip, rejects_directories_that_lie) {
  std::string bytes = two_entries();
  patch<uint16_t>(bytes, end_of(bytes) + 8, 3);
  patch<uint16_t>(bytes, end_of(bytes) + 10, 3);
  expect_refused(bytes, "claims 3 entries");
  bytes = two_entries();
  patch<uint16_t>(bytes, end_of(bytes) + 8, 1);
  patch<uint16_t>(bytes, end_of(bytes) + 10, 1);
  expect_refused(bytes, "its 1 entries take");
  bytes = two_entries();
  patch<uint32_t>(bytes, end_of(bytes) + 16, 0);
  expect_refused(bytes, "does not end where");
  bytes = two_entries();
  patch<uint32_t>(bytes, end_of(bytes) + 12, 0xFFFFFFF0);
  expect_refused(bytes, "does not end where");
  bytes = two_entries();
  bytes[central_of(bytes, 1)] = 'X';
  expect_refused(bytes, "does not begin an entry");
  bytes = two_entries();
  patch<uint16_t>(bytes, central_of(bytes, 1) + 28, 60000);
  expect_refused(bytes, "is cut off");
}

TEST(Zip, rejects_bad_zip64_records) {
  std::string bytes = two_entries();
  std::string locator("PK\x06\x07\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0", 20);
  std::string with = bytes.substr(0, end_of(bytes)) + locator + bytes.substr(end_of(bytes));
  expect_refused(with, "no zip64 record");
  patch<uint64_t>(with, end_of(bytes) + 8, uint64_t{1} << 60);
  expect_refused(with, "it needs 56 bytes");
  bytes = two_entries();
  patch<uint32_t>(bytes, central_of(bytes) + 24, 0xFFFFFFFF);
  expect_refused(bytes, "lacks its zip64 field");
}

TEST(Zip, rejects_encrypted_entries) {
  std::string bytes = two_entries();
  patch<uint16_t>(bytes, central_of(bytes) + 8, 0x801);
  expect_refused(bytes, "encrypted", ErrorCode::kUnsupportedFeature);
}

TEST(Zip, rejects_compressed_entries) {
  std::string bytes = two_entries();
  patch<uint16_t>(bytes, central_of(bytes) + 10, 8);
  expect_refused(bytes, "method 8", ErrorCode::kUnsupportedFeature);
}

TEST(Zip, rejects_sizes_that_differ) {
  std::string bytes = two_entries();
  patch<uint32_t>(bytes, central_of(bytes) + 24, 1000000);
  expect_refused(bytes, "1000000 bytes stored as 10");
}

TEST(Zip, rejects_names_that_leave_the_folder) {
  for (std::string name : {"/b", "..", "../b", "a/../b", "a//b", ".", "a/./b", "a\\b", "C:x"}) {
    std::string bytes = archive({{std::string(name.size(), '_'), "x"}});
    std::string placeholder(name.size(), '_');
    for (size_t at; (at = bytes.find(placeholder)) != std::string::npos;) bytes.replace(at, name.size(), name);
    expect_refused(bytes, "not a plain relative path");
  }
}

TEST(Zip, rejects_names_that_are_no_text) {
  std::string bytes = archive({{"__", "x"}});
  std::string nul = bytes, utf8 = bytes;
  nul.replace(central_of(bytes) + 46, 2, std::string("a\0", 2));
  expect_refused(nul, "holds a NUL");
  utf8.replace(central_of(bytes) + 46, 2, "\xff\xfe");
  expect_refused(utf8, "is not UTF-8");
}

TEST(Zip, rejects_two_entries_of_one_name) {
  std::string bytes = archive({{"a_", "x"}, {"b_", "x"}});
  for (size_t at; (at = bytes.find("b_")) != std::string::npos;) bytes.replace(at, 2, "a_");
  expect_refused(bytes, "two entries named \"a_\"");
}

TEST(Zip, rejects_headers_that_contradict_the_directory) {
  std::string good = archive({{"abc", "0123456789"}});
  std::string bytes = good;
  bytes[30] = 'x';
  expect_refused(bytes, "another name");
  bytes = good;
  patch<uint16_t>(bytes, 6, 0);
  expect_refused(bytes, "other flags");
  bytes = good;
  patch<uint32_t>(bytes, 14, 1);
  expect_refused(bytes, "another size or checksum");
  bytes = good;
  patch<uint32_t>(bytes, 22, 9);
  expect_refused(bytes, "another size or checksum");
  bytes = good;
  bytes[0] = 'X';
  expect_refused(bytes, "no header at byte 0");
}

TEST(Zip, rejects_overlaps) {
  std::string bytes = two_entries();
  size_t second = central_of(bytes, 1);
  // The second entry becomes a copy of the first, at the same place: what a quine bomb does.
  patch<uint32_t>(bytes, second + 42, 0);
  bytes[second + 46] = 'a';
  std::memcpy(&bytes[second + 16], &bytes[central_of(bytes) + 16], 12);
  expect_refused(bytes, "overlap");
}

TEST(Zip, rejects_entries_that_reach_into_the_directory) {
  std::string bytes = two_entries();
  patch<uint32_t>(bytes, central_of(bytes, 1) + 20, 500);
  patch<uint32_t>(bytes, central_of(bytes, 1) + 24, 500);
  expect_refused(bytes, "reach into the directory");
  bytes = two_entries();
  patch<uint32_t>(bytes, central_of(bytes, 1) + 42, static_cast<uint32_t>(end_of(bytes)));
  expect_refused(bytes, "not before the directory");
}

TEST(Zip, rejects_damaged_contents) {
  TestFolder folder;
  std::string bytes = two_entries();
  bytes[bytes.find("01234")] = 'X';
  auto reader = open_bytes(folder, bytes);
  ASSERT_TRUE(reader.has_value());
  expect_error(reader->read(*reader->find("a")), ErrorCode::kCorruptFile, "checksum");
  EXPECT_TRUE(reader->read(*reader->find("b")).has_value());
  expect_error(reader->read(*reader->find("b"), 4), ErrorCode::kInvalidInput, "more than");
}

TEST(Zip, writer_rejects_bad_names) {
  ZipWriter writer([](std::span<const std::byte>) -> Status { return {}; });
  expect_error(writer.add("../x", ""), ErrorCode::kInvalidInput, "relative path");
  expect_error(writer.add("", ""), ErrorCode::kInvalidInput, "empty");
  ASSERT_TRUE(writer.add("x", "").has_value());
  expect_error(writer.add("x", ""), ErrorCode::kInvalidInput, "one name");
}

}  // namespace
}  // namespace argosy
