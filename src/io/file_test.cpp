#include "io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <numeric>

#include "io/test_folder.h"

namespace argosy {
namespace {

std::string counted(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 256);
  return bytes;
}

std::string read_box(const TensorSource& source, Box box) {
  int64_t elements = std::accumulate(box.extent.begin(), box.extent.end(), int64_t{1}, std::multiplies<>());
  std::string out(static_cast<size_t>(*packed_bytes(source.dtype(), elements)), '?');
  size_t needed = source.scratch_for(elements) + 64;
  auto buffer = std::make_unique<std::byte[]>(needed);
  size_t aligned = (16 - reinterpret_cast<uintptr_t>(buffer.get()) % 16) % 16;
  Scratch scratch(std::span(buffer.get() + aligned, needed - 16));
  Status status = source.read(box, std::as_writable_bytes(std::span(out)), scratch);
  EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message);
  return out;
}

/// What the box should hold, computed element by element.
std::string expected_box(const std::string& bytes, const std::vector<int64_t>& shape, const Box& box, size_t width) {
  std::string out;
  std::vector<int64_t> index(shape.size(), 0);
  while (true) {
    int64_t element = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim) element = element * shape[dim] + box.start[dim] + index[dim];
    out += bytes.substr(static_cast<size_t>(element) * width, width);
    size_t dim = shape.size();
    while (dim > 0 && ++index[dim - 1] == box.extent[dim - 1]) index[--dim] = 0;
    if (dim == 0) return out;
  }
}

TEST(ReadFile, reads_parts) {
  TestFolder folder;
  auto path = folder.write("a", "0123456789");
  for (auto hold : {ReadFile::Hold::kOpen, ReadFile::Hold::kOnDemand}) {
    auto file = ReadFile::open(path, hold);
    ASSERT_TRUE(file.has_value());
    EXPECT_EQ((*file)->size(), 10u);
    EXPECT_EQ(*(*file)->read_text(3, 4), "3456");
    EXPECT_EQ(*(*file)->read_text(10, 0), "");
    expect_error((*file)->read_text(8, 3), ErrorCode::kCorruptFile, "10 bytes");
    expect_error((*file)->read_text(UINT64_MAX, 2), ErrorCode::kCorruptFile, "10 bytes");
  }
  EXPECT_EQ(*read_text_file(path), "0123456789");
}

TEST(ReadFile, rejects_what_is_no_file) {
  TestFolder folder;
  expect_error(ReadFile::open(folder / "none"), ErrorCode::kNotFound, "none");
  expect_error(ReadFile::open(folder.path()), ErrorCode::kInvalidInput, "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error(ReadFile::open(folder / "pipe"), ErrorCode::kInvalidInput, "pipe or a device");
}

TEST(ReadFile, rejects_too_large_text) {
  TestFolder folder;
  auto path = folder.write("a", "0123456789");
  expect_error(read_text_file(path, 9), ErrorCode::kInvalidInput, "10 B");
}

TEST(ReadFile, rejects_a_file_that_became_shorter) {
  TestFolder folder;
  auto path = folder.write("a", "0123456789");
  auto file = *ReadFile::open(path);
  std::filesystem::resize_file(path, 5);
  expect_error(file->read_text(2, 6), ErrorCode::kIo, "ends at byte 5");
}

TEST(ReadFile, rejects_a_file_that_was_replaced) {
  TestFolder folder;
  auto path = folder.write("a", "0123456789");
  auto file = *ReadFile::open(path, ReadFile::Hold::kOnDemand);
  std::filesystem::rename(folder.write("b", "abcdefghij"), path);
  expect_error(file->read_text(2, 6), ErrorCode::kIo, "was changed");
}

TEST(FileSlice, reads_boxes) {
  TestFolder folder;
  std::vector<int64_t> shape = {5, 3, 7, 4};
  std::string bytes = counted(5 * 3 * 7 * 4 * 2);
  auto file = *ReadFile::open(folder.write("t", "header!!" + bytes));
  auto source = *file_slice(file, 8, DType::kF16, shape);
  std::vector<Box> boxes = {
      {{0, 0, 0, 0}, {5, 3, 7, 4}}, {{1, 0, 0, 0}, {3, 3, 7, 4}}, {{1, 1, 0, 0}, {3, 1, 7, 4}},
      {{0, 0, 2, 0}, {5, 3, 3, 4}}, {{0, 0, 0, 1}, {5, 3, 7, 2}}, {{4, 2, 6, 3}, {1, 1, 1, 1}},
      {{1, 1, 1, 1}, {2, 2, 2, 2}},
  };
  for (const Box& box : boxes) EXPECT_EQ(read_box(*source, box), expected_box(bytes, shape, box, 2));
  EXPECT_EQ(read_box(*source, {{0, 0, 0, 0}, {5, 0, 7, 4}}), "");
}

TEST(FileSlice, reads_small_pieces_far_and_near) {
  TestFolder folder;
  std::string bytes = counted(600 * 1000);
  auto file = *ReadFile::open(folder.write("t", bytes));
  for (std::vector<int64_t> shape : {std::vector<int64_t>{600, 1000}, {20, 30000}, {60000, 10}}) {
    auto source = *file_slice(file, 0, DType::kU8, shape);
    Box box{{shape[0] / 4, shape[1] / 3}, {shape[0] / 2, shape[1] / 5}};
    EXPECT_EQ(read_box(*source, box), expected_box(bytes, shape, box, 1));
  }
}

TEST(FileSlice, reads_scalars_and_packed_types) {
  TestFolder folder;
  auto file = *ReadFile::open(folder.write("t", "abcdefgh"));
  EXPECT_EQ(read_box(**file_slice(file, 4, DType::kF32, {}), {{}, {}}), "efgh");
  EXPECT_EQ(read_box(**file_slice(file, 0, DType::kF4E2M1, {4, 4}), {{1, 2}, {2, 2}}), "df");
}

TEST(FileSlice, tells_where_it_lies_and_how_it_is_made) {
  TestFolder folder;
  auto file = *ReadFile::open(folder.write("t", "abcdefgh"));
  auto source = *file_slice(file, 2, DType::kI16, {3, 1});
  auto range = source->file_range();
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->path, (folder / "t").native());
  EXPECT_EQ(range->offset, 2u);
  EXPECT_EQ(range->size, 6u);
  EXPECT_EQ(source->recipe(), "file(\"" + (folder / "t").native() + "\", 2, i16[3, 1])");
}

TEST(FileSlice, rejects_what_lies_outside) {
  TestFolder folder;
  auto file = *ReadFile::open(folder.write("t", "abcdefgh"));
  expect_error(file_slice(file, 5, DType::kF32, {}), ErrorCode::kInvalidInput, "does not lie inside");
  expect_error(file_slice(file, UINT64_MAX - 1, DType::kF32, {}), ErrorCode::kInvalidInput, "does not lie inside");
}

TEST(FileSlice, rejects_shapes_without_a_size) {
  TestFolder folder;
  auto file = *ReadFile::open(folder.write("t", "abcdefgh"));
  EXPECT_FALSE(file_slice(file, 0, DType::kF32, {-1}).has_value());
  EXPECT_FALSE(file_slice(file, 0, DType::kF32, {INT64_MAX, 2}).has_value());
  EXPECT_FALSE(file_slice(file, 0, DType::kF4E2M1, {3}).has_value());
}

}  // namespace
}  // namespace argosy
