#include "backends/executorch/writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "backends/executorch/memory_plan.h"
#include "backends/executorch/read.h"
#include "io/test_folder.h"

namespace argosy::executorch {
namespace {

TensorSourcePtr numbers(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 251);
  std::vector<std::byte> bytes(count * sizeof(float));
  if (count > 0) std::memcpy(bytes.data(), values.data(), bytes.size());
  return *literal(std::move(bytes), DType::kF32, {static_cast<int64_t>(count)});
}

Tensor tensor(std::vector<int32_t> sizes, Storage storage = Storage::kPlanned, std::string key = "") {
  Tensor result{.sizes = std::move(sizes)};
  result.storage = storage;
  result.key = std::move(key);
  return result;
}

/// One method: x + w, a state, a delegate; and a constant as a method.
Document small_document() {
  Method forward{.name = "forward", .inputs = {0}, .outputs = {3, 4}};
  forward.values = {tensor({8}), tensor({8}, Storage::kConstant, "w"), int64_t{1},           tensor({8}),
                    tensor({8}), tensor({300}, Storage::kState, "s"),  TensorValues{{0, 1}}, IntValues{{2, 2}}};
  forward.kernels = {{"aten::add", "out"}};
  forward.delegates = {{.backend = "XnnpackBackend", .payload = "not one that can be read"}};
  forward.instructions = {KernelCall{0, {0, 1, 2, 3, 3}}, DelegateCall{0, {3, 4}}, JumpIfFalse{2, 0}};
  Method getter{.name = "get_n", .values = {int64_t{7}}, .outputs = {0}};
  Document document{.methods = {forward, getter},
                    .data = {{"d", numbers(3'000'000)}, {"s", numbers(300)}, {"w", numbers(8)}}};
  for (Method& method : document.methods) EXPECT_TRUE(plan_memory(method));
  return document;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string written(const Document& document, DataPlace place, int threads, bool wants_data = false) {
  TestFolder folder;
  auto program = folder.path() / "p.pte", data = folder.path() / "p.ptd";
  Result<Layout> layout = Layout::build(document, place);
  EXPECT_TRUE(layout);
  EXPECT_TRUE(layout->write(program, data, {.scratch_bytes = size_t{8} << 20, .threads = threads}));
  std::string bytes = contents(program);
  EXPECT_EQ(bytes.size(), layout->program_bytes());
  EXPECT_EQ(place == DataPlace::kBeside ? contents(data).size() : 0, layout->data_bytes());
  return wants_data ? contents(data) : bytes;
}

Result<ProgramFile> read_text(const std::string& bytes) {
  auto read = [&](uint64_t offset, std::span<std::byte> out) -> Status {
    EXPECT_LE(offset + out.size(), bytes.size());
    if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
    return {};
  };
  return read_program(read, bytes.size(), "test");
}

TEST(Writer, bytes_do_not_depend_on_threads) {
  Document document = small_document();
  EXPECT_EQ(written(document, DataPlace::kInside, 1), written(document, DataPlace::kInside, 3));
  EXPECT_EQ(written(document, DataPlace::kBeside, 1, true), written(document, DataPlace::kBeside, 3, true));
}

TEST(Writer, what_is_written_is_read_back) {
  Document document = small_document();
  Result<ProgramFile> file = read_text(written(document, DataPlace::kInside, 1));
  ASSERT_TRUE(file) << to_text(file.error());
  ASSERT_EQ(file->methods.size(), 2U);
  const Method& forward = file->methods[0];
  EXPECT_EQ(forward.name, "forward");
  EXPECT_EQ(forward.values.size(), document.methods[0].values.size());
  EXPECT_EQ(forward.instructions.size(), 3U);
  EXPECT_EQ(forward.arenas, document.methods[0].arenas);
  EXPECT_EQ(forward.tensor(1).key, "w");
  EXPECT_EQ(forward.tensor(1).storage, Storage::kConstant);
  EXPECT_EQ(forward.tensor(5).storage, Storage::kState);
  EXPECT_EQ(forward.tensor(3).offset, document.methods[0].tensor(3).offset);
  EXPECT_EQ(std::get<int64_t>(file->methods[1].values[0]), 7);
  EXPECT_EQ(file->delegates[0][0].payload_bytes, 24U);
  EXPECT_EQ(file->delegates[0][0].nodes, 0U);
  ASSERT_EQ(file->data.size(), 3U);
  EXPECT_EQ(file->data[0].bytes, 12'000'000U);
  // The segment of constants is loaded as a whole, and holds nothing else.
  EXPECT_EQ(file->constant_bytes, 32U);
}

TEST(Writer, data_of_more_than_four_gigabytes_has_a_place) {
  Document document = small_document();
  document.data[0].source = *shape_only(DType::kF32, {int64_t{3} << 30}, "huge");
  Result<Layout> layout = Layout::build(document, DataPlace::kInside);
  ASSERT_TRUE(layout);
  EXPECT_GT(layout->program_bytes(), uint64_t{12} << 30);
  EXPECT_LT(layout->program_bytes(), (uint64_t{12} << 30) + 8192);
}

TEST(Writer, rejects_data_of_another_size_than_its_tensor) {
  Document document = small_document();
  document.data[2].source = numbers(9);
  EXPECT_FALSE(Layout::build(document, DataPlace::kInside));
}

TEST(Writer, rejects_types_that_the_runtime_lacks) {
  Document document = small_document();
  document.methods[0].tensor(0).dtype = DType::kC64;
  EXPECT_FALSE(Layout::build(document, DataPlace::kInside));
}

TEST(Reader, rejects_files_that_end_early) {
  Document document = small_document();
  document.data[0].source = numbers(100);
  std::string bytes = written(document, DataPlace::kInside, 1);
  ASSERT_TRUE(read_text(bytes));
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 40) {
    EXPECT_FALSE(read_text(bytes.substr(0, size))) << size;
  }
}

TEST(Reader, any_bit_may_be_wrong) {
  Document document = small_document();
  document.data[0].source = numbers(100);
  std::string bytes = written(document, DataPlace::kInside, 1);
  size_t refused = 0;
  for (size_t bit = 0; bit < std::min<size_t>(bytes.size(), 2000) * 8; bit += 3) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    Result<ProgramFile> file = read_text(damaged);
    refused += file ? 0 : 1;
    if (!file) continue;
    for (const Method& method : file->methods) lifetimes(method);
  }
  EXPECT_GT(refused, 1000U);
}

TEST(Reader, rejects_what_is_no_program) {
  EXPECT_FALSE(read_text(""));
  EXPECT_FALSE(read_text(std::string(64, '\0')));
  EXPECT_FALSE(read_text("{\"a program\": \"but in JSON, and long enough for a header of 40 bytes\"}"));
}

}  // namespace
}  // namespace argosy::executorch
