#include "io/onnx/adapter_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "io/test_folder.h"

namespace argosy {
namespace {

NamedSource filled(std::string name, DType dtype, std::vector<int64_t> shape, char byte) {
  auto bytes = static_cast<size_t>(checked_tensor_bytes(dtype, shape).value());
  return {std::move(name),
          literal(std::vector<std::byte>(bytes, static_cast<std::byte>(byte)), dtype, std::move(shape)).value()};
}

/// A FlatBuffers table as its format says it is found, with nothing of ours.
struct Table {
  const std::string& file;
  size_t at;

  template <typename Number>
  Number number(size_t place) const {
    Number found;
    std::memcpy(&found, file.data() + place, sizeof found);
    return found;
  }
  size_t field(size_t index) const {
    size_t vtable = at - static_cast<size_t>(number<int32_t>(at));
    EXPECT_GE(number<uint16_t>(vtable), 6 + 2 * index);
    return at + number<uint16_t>(vtable + 4 + 2 * index);
  }
  size_t target(size_t place) const { return place + number<uint32_t>(place); }
};

TEST(AdapterFile, is_what_the_format_says) {
  TestFolder folder;
  auto layout = lay_out_adapter({filled("second", DType::kF16, {3, 5}, 2), filled("a", DType::kF32, {1, 7}, 1)});
  ASSERT_TRUE(layout.has_value()) << layout.error().message;
  auto output = OutputFile::create(folder / "x.onnx_adapter", Overwrite::kRefuse);
  ASSERT_TRUE(output.has_value());
  ASSERT_TRUE(write_adapter(*layout, *output, 1 << 20).has_value());
  ASSERT_TRUE(output->commit().has_value());
  const std::string file = folder.read("x.onnx_adapter");
  ASSERT_EQ(file.size(), layout->total_bytes);
  EXPECT_EQ(file.substr(4, 4), "TORT");
  Table root{file, 0};
  root.at = root.target(0);
  EXPECT_EQ(root.number<int32_t>(root.field(0)), 1);
  const size_t list = root.target(root.field(3));
  ASSERT_EQ(root.number<uint32_t>(list), 2u);
  struct Expected {
    std::string name;
    int32_t dtype;
    std::vector<int64_t> shape;
    std::string bytes;
  };
  const Expected expected[] = {{"a", 1, {1, 7}, std::string(28, 1)}, {"second", 10, {3, 5}, std::string(30, 2)}};
  for (size_t i = 0; i < 2; ++i) {
    Table tensor{file, root.target(list + 4 + 4 * i)};
    const size_t name = tensor.target(tensor.field(0)), dims = tensor.target(tensor.field(1));
    const size_t data = tensor.target(tensor.field(3));
    EXPECT_EQ(file.substr(name + 4, tensor.number<uint32_t>(name) + 1), expected[i].name + '\0');
    EXPECT_EQ(tensor.number<int32_t>(tensor.field(2)), expected[i].dtype);
    ASSERT_EQ(tensor.number<uint32_t>(dims), 2u);
    EXPECT_EQ(dims % 8, 4u);
    EXPECT_EQ(data % 8, 4u);
    for (size_t dim = 0; dim < 2; ++dim) EXPECT_EQ(tensor.number<int64_t>(dims + 4 + 8 * dim), expected[i].shape[dim]);
    EXPECT_EQ(file.substr(data + 4, tensor.number<uint32_t>(data)), expected[i].bytes);
  }
}

TEST(AdapterFile, rejects_what_the_format_or_the_engine_cannot_have) {
  expect_error(lay_out_adapter({}), ErrorCode::kInvalidInput, "without tensors");
  expect_error(lay_out_adapter({filled("a", DType::kI64, {2}, 0)}), ErrorCode::kUnsupportedFeature, "\"a\" is i64[2]");
  auto large = shape_only(DType::kF32, {1 << 20, 512}, "large").value();
  expect_error(lay_out_adapter({{"large", large}}), ErrorCode::kUnsupportedFeature, "2 GiB");
}

}  // namespace
}  // namespace argosy
