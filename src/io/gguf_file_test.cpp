#include "io/gguf_file.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "io/checkpoint.h"
#include "io/test_folder.h"

namespace argosy {
namespace {

template <class T>
std::string little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string gguf_text(std::string_view text) { return little(uint64_t{text.size()}) + std::string(text); }
std::string gguf_tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
  std::string result = gguf_text(name) + little(static_cast<uint32_t>(dims.size()));
  for (uint64_t dim : dims) result += little(dim);
  return result + little(type) + little(offset);
}
std::string gguf(uint64_t tensors, uint64_t metadata, const std::string& rest, uint32_t version = 3) {
  return "GGUF" + little(version) + little(tensors) + little(metadata) + rest;
}
/// Fills up to a multiple of the alignment.
std::string filled(std::string bytes, size_t alignment) {
  while (bytes.size() % alignment != 0) bytes += '\0';
  return bytes;
}

void expect_gguf_refused(const std::string& bytes, std::string_view part, ErrorCode code = ErrorCode::kCorruptFile) {
  TestFolder folder;
  folder.write("model.gguf", bytes);
  expect_error(Checkpoint::open(folder.path()), code, part);
}

TEST(GgufFile, reads_tensors_behind_any_metadata) {
  TestFolder folder;
  std::string metadata = gguf_text("general.alignment") + little(uint32_t{4}) + little(uint32_t{64}) +
                         gguf_text("texts") + little(uint32_t{9}) + little(uint32_t{8}) + little(uint64_t{2}) +
                         gguf_text("a") + gguf_text("bc") + gguf_text("numbers") + little(uint32_t{9}) +
                         little(uint32_t{6}) + little(uint64_t{3}) + std::string(12, 'x') + gguf_text("flag") +
                         little(uint32_t{7}) + "\x01" + gguf_text("nested") + little(uint32_t{9}) +
                         little(uint32_t{9}) + little(uint64_t{1}) + little(uint32_t{0}) + little(uint64_t{2}) + "xy";
  std::string tensors = gguf_tensor("w", {2, 3}, 24, 64) + gguf_tensor("q", {32, 1}, 8, 0);
  std::string bytes = filled(gguf(2, 5, metadata + tensors), 64);
  bytes += filled(std::string("\x00\x38", 2) + std::string(32, '\x02'), 64) + "abcdef";
  folder.write("model.gguf", bytes);
  auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  ASSERT_NE(checkpoint->find("w"), nullptr);
  EXPECT_EQ(checkpoint->find("w")->shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(checkpoint->find("q")->dtype, DType::kF32);
  EXPECT_EQ(checkpoint->find("q")->shape, (std::vector<int64_t>{1, 32}));
  std::string found;
  ByteSink sink = [&](std::span<const std::byte> more) -> Status {
    found.append(reinterpret_cast<const char*>(more.data()), more.size());
    return {};
  };
  ASSERT_TRUE(checkpoint->tensor("w").value()->stream_to(sink, 1 << 20).has_value());
  EXPECT_EQ(found, "abcdef");
  found.clear();
  ASSERT_TRUE(checkpoint->tensor("q").value()->stream_to(sink, 1 << 20).has_value());
  EXPECT_EQ(found.substr(0, 4), little(1.0f));
  EXPECT_EQ(found.size(), 128u);
}

TEST(GgufFile, rejects_what_contradicts_itself) {
  expect_gguf_refused("", "ends early");
  expect_gguf_refused("GGML1234", "does not begin with GGUF");
  expect_gguf_refused(gguf(0, 0, "", 1), "version 1", ErrorCode::kUnsupportedVersion);
  expect_gguf_refused(gguf(0, 0, "", 0x03000000), "version 50331648", ErrorCode::kUnsupportedVersion);
  expect_gguf_refused(gguf(uint64_t{1} << 40, 0, ""), "claims 1099511627776 tensors");
  expect_gguf_refused(gguf(0, uint64_t{1} << 40, ""), "1099511627776 entries of metadata");
  expect_gguf_refused(gguf(1, 0, ""), "ends early");
  expect_gguf_refused(gguf(0, 1, little(~uint64_t{0})), "a name of 18446744073709551615 bytes");
  expect_gguf_refused(gguf(0, 1, gguf_text("\xff")), "not UTF-8");
  expect_gguf_refused(gguf(0, 1, gguf_text("k") + little(uint32_t{13})), "metadata of type 13");
  expect_gguf_refused(gguf(0, 1, gguf_text("k") + little(uint32_t{8}) + little(~uint64_t{0})), "ends early");
  std::string array = gguf_text("k") + little(uint32_t{9});
  expect_gguf_refused(gguf(0, 1, array + little(uint32_t{10}) + little(~uint64_t{0})), "items");
  for (int i = 0; i < 20; ++i) array += little(uint32_t{9}) + little(uint64_t{1});
  expect_gguf_refused(gguf(0, 1, array), "nested too deeply");
  expect_gguf_refused(gguf(0, 1, gguf_text("general.alignment") + little(uint32_t{4}) + little(uint32_t{0})),
                      "alignment of 0");
}

TEST(GgufFile, rejects_tensors_that_do_not_fit) {
  auto refused = [](const std::string& tensors, std::string_view part, ErrorCode code = ErrorCode::kCorruptFile,
                    uint64_t count = 1) {
    expect_gguf_refused(filled(gguf(count, 0, tensors), 32) + std::string(64, '\0'), part, code);
  };
  refused(gguf_tensor("w", {16}, 0, 32), "lies outside the file");
  refused(gguf_tensor("w", {16}, 0, ~uint64_t{0}), "lies outside the file");
  refused(gguf_tensor("w", {uint64_t{1} << 62}, 0, 0), "overflows");
  refused(gguf_tensor("w", {uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0), "overflows");
  refused(gguf_tensor("w", {~uint64_t{0}}, 0, 0), "negative");
  refused(gguf_tensor("w", {31}, 8, 0), "no whole number of blocks");
  refused(gguf_tensor("w", {}, 8, 0), "no whole number of blocks");
  refused(gguf_tensor("w", std::vector<uint64_t>(9, 1), 0, 0), "has 9 dims");
  refused(gguf_tensor("", {1}, 0, 0), "empty name");
  refused(gguf_tensor("w", {256}, 10, 0), "has the type Q2_K, which is not read", ErrorCode::kUnsupportedFeature);
  refused(gguf_tensor("w", {256}, 4, 0), "has the type number 4", ErrorCode::kUnsupportedFeature);
  refused(gguf_tensor("w", {1}, 0, 0) + gguf_tensor("w", {1}, 0, 0), "tensor \"w\" twice", ErrorCode::kCorruptFile, 2);
}

}  // namespace
}  // namespace argosy
