#include "io/torch_file.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "io/checkpoint_testing.h"
#include "io/test_folder.h"
#include "io/torch_pickle.h"
#include "io/zip.h"

namespace argosy {
namespace {

// Pickles as torch.save writes them, by hand: what is hostile no library writes.

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string text(std::string_view value) { return "X" + raw(static_cast<uint32_t>(value.size())) + std::string(value); }
std::string number(int64_t value) { return "\x8a\x08" + raw(value); }
std::string global(std::string_view module, std::string_view name) { return format("c{}\n{}\n", module, name); }
std::string tuple(const std::vector<int64_t>& values) {
  std::string result = "(";
  for (int64_t value : values) result += number(value);
  return result + "t";
}
std::string storage(std::string_view type, std::string_view key, int64_t count) {
  return "(" + text("storage") + global("torch", type) + text(key) + text("cpu") + number(count) + "tQ";
}
std::string tensor(const std::string& stored, int64_t offset, const std::vector<int64_t>& shape,
                   const std::vector<int64_t>& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") + "(" + stored + number(offset) + tuple(shape) + tuple(strides) +
         "\x89" + global("collections", "OrderedDict") + ")RtR";
}
/// A state dict of names and pickled values.
std::string state(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string result = "\x80\x02}q";
  result += '\0';
  result += "(";
  for (const auto& [name, value] : items) result += text(name) + value;
  return result + "u.";
}

using Files = std::vector<std::pair<std::string, std::string>>;

std::string archive_of(const std::string& pickle, const Files& storages) {
  std::string bytes;
  ZipWriter writer([&](std::span<const std::byte> more) -> Status {
    bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
    return {};
  });
  EXPECT_TRUE(writer.add("m/data.pkl", pickle).has_value());
  for (const auto& [name, contents] : storages) EXPECT_TRUE(writer.add("m/" + name, contents).has_value());
  EXPECT_TRUE(writer.finish().has_value());
  return bytes;
}

void expect_file_refused(const std::string& bytes, std::string_view part, ErrorCode code = ErrorCode::kCorruptFile) {
  TestFolder folder;
  folder.write("pytorch_model.bin", bytes);
  expect_error(Checkpoint::open(folder.path()), code, part);
}

/// A file of one storage "0" of six bytes and one tensor "w".
void expect_tensor_refused(const std::string& value, std::string_view part, ErrorCode code = ErrorCode::kCorruptFile) {
  expect_file_refused(archive_of(state({{"w", value}}), {{"data/0", "abcdef"}}), part, code);
}
void expect_pickle_refused(const std::string& pickle, std::string_view part, ErrorCode code = ErrorCode::kCorruptFile) {
  expect_error(read_torch_pickle(pickle, "x.bin"), code, part);
}

const std::string& six() {
  static const std::string stored = storage("ByteStorage", "0", 6);
  return stored;
}

TEST(TorchFile, reads_tensors_that_share_transpose_and_cut_storages) {
  TestFolder folder;
  std::string pickle = state({{"whole", tensor(six(), 0, {2, 3}, {3, 1})},
                              {"tied", tensor(six(), 0, {2, 3}, {3, 1})},
                              {"turned", tensor(six(), 0, {3, 2}, {1, 3})},
                              {"part", tensor(six(), 2, {1, 3}, {77, 1})},
                              {"turned_with_ones", tensor(six(), 0, {1, 3, 1, 2}, {9, 1, 9, 3})},
                              {"scalar", tensor(six(), 5, {}, {})},
                              {"empty", tensor(six(), 6, {0, 4}, {4, 1})},
                              {"wide", tensor(storage("HalfStorage", "1", 2), 1, {1}, {1})}});
  folder.write("pytorch_model.bin",
               archive_of(pickle, {{"byteorder", "little"}, {"data/0", "abcdef"}, {"data/1", "wxyz"}}));
  for (const auto& path : {folder.path(), folder / "pytorch_model.bin"}) {
    auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->tensors().size(), 8u);
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "whole"), "abcdef");
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "tied"), "abcdef");
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "turned"), "adbecf");
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "turned_with_ones"), "adbecf");
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "part"), "cde");
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "scalar"), "f");
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "empty"), "");
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "wide"), "yz");
    EXPECT_EQ(checkpoint->find("wide")->dtype, DType::kF16);
    EXPECT_EQ(checkpoint->find("turned_with_ones")->shape, (std::vector<int64_t>{1, 3, 1, 2}));
  }
}

TEST(TorchFile, reads_parameters_and_ignores_attributes_of_dicts) {
  std::string parameter = global("torch._utils", "_rebuild_parameter") + "(" + tensor(six(), 0, {6}, {1}) + "\x88" +
                          global("collections", "OrderedDict") + ")RtR";
  std::string pickle = "\x80\x02" + global("collections", "OrderedDict") + ")R" + text("w") + parameter + "s}" +
                       text("_metadata") + "}sb.";
  auto tensors = read_torch_pickle(pickle, "x.bin");
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 1u);
  EXPECT_EQ((*tensors)[0].name, "w");
  EXPECT_EQ((*tensors)[0].shape, std::vector<int64_t>{6});
}

TEST(TorchFile, reads_shards_by_their_index) {
  TestFolder folder;
  folder.write("a.bin", archive_of(state({{"a", tensor(six(), 0, {6}, {1})}}), {{"data/0", "abcdef"}}));
  folder.write("b.bin", archive_of(state({{"b", tensor(six(), 0, {6}, {1})}}), {{"data/0", "ghijkl"}}));
  folder.write("pytorch_model.bin.index.json", R"({"weight_map": {"a": "a.bin", "b": "b.bin"}})");
  auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(bytes_of_tensor(*checkpoint, "a") + bytes_of_tensor(*checkpoint, "b"), "abcdefghijkl");
}

TEST(TorchFile, rejects_what_would_run_code) {
  for (const char* module : {"os", "posix", "builtins", "torch", "torch._utils"}) {
    std::string call = "\x80\x02" + global(module, "system") + text("true") + "\x85R.";
    expect_pickle_refused(call, format("it asks for \"{}.system\"", module), ErrorCode::kUnsupportedFeature);
    std::string by_stack = "\x80\x04" + text(module) + text("system") + "\x93.";
    expect_pickle_refused(by_stack, format("it asks for \"{}.system\"", module), ErrorCode::kUnsupportedFeature);
  }
  // INST, OBJ, NEWOBJ, EXT1: other ways to make objects.
  for (char op : {'i', 'o', '\x81', '\x82', 'P', 'S', 'I'}) {
    expect_pickle_refused(std::string("\x80\x02(") + op, "which no state dict needs", ErrorCode::kUnsupportedFeature);
  }
}

TEST(TorchFile, rejects_pickles_that_contradict_themselves) {
  expect_pickle_refused("", "ends early");
  expect_pickle_refused("\x80", "ends early");
  expect_pickle_refused("}", "ends early");
  expect_pickle_refused("ccollections\nOrderedDict", "ends early");
  expect_pickle_refused("X\xff\xff\xff\xff.", "ends early");
  expect_pickle_refused("X" + raw(uint32_t{2}) + "\xff\xff.", "not UTF-8");
  expect_pickle_refused(".", "takes what it has not made");
  expect_pickle_refused("(.", "takes what it has not made");
  expect_pickle_refused("t.", "takes what it has not made");
  expect_pickle_refused("(q\x01.", "takes what it has not made");
  expect_pickle_refused("N\x86.", "takes what it has not made");
  expect_pickle_refused("h\x07.", "refers to object 7");
  expect_pickle_refused("}(Nu.", "has no value");
  expect_pickle_refused("](NNu.", "fills what is not a dict");
  expect_pickle_refused("NNR.", "calls what is no function");
  expect_pickle_refused("N}b.", "gives attributes");
  expect_pickle_refused("\x8a\x09", "more than 64 bits");
  expect_pickle_refused("NQ.", "no storage");
  expect_pickle_refused(storage("uint16", "0", 1) + ".", "a storage is of the type uint16");
  expect_pickle_refused(storage("LongStorage", "0", int64_t{1} << 61) + ".", "has 2305843009213693952 elements");
  expect_pickle_refused(storage("LongStorage", "0", -1) + ".", "has -1 elements");
  expect_pickle_refused(global("torch._utils", "_rebuild_tensor_v2") + ")R.", "has other arguments");
  expect_pickle_refused(global("collections", "OrderedDict") + "N\x85R.", "has other arguments");
  expect_pickle_refused(tensor(six(), 0, {6}, {1, 1}) + ".", "as many strides");
  expect_pickle_refused(tensor("N", 0, {6}, {1}) + ".", "has no storage");
  expect_pickle_refused("\x80\x09", "protocol 9", ErrorCode::kUnsupportedFeature);
  expect_pickle_refused("N.", "it holds nothing where a dict", ErrorCode::kUnsupportedFeature);
  expect_pickle_refused(state({{"epoch", number(3)}}), "\"epoch\" is an integer", ErrorCode::kUnsupportedFeature);
  expect_pickle_refused("}NNs.", "a key of its dict is nothing", ErrorCode::kUnsupportedFeature);
  expect_pickle_refused("}" + text("") + tensor(six(), 0, {6}, {1}) + "s.", "empty name");
}

TEST(TorchFile, survives_depth_loops_and_numbers_of_objects) {
  std::string deep(3'000'000, '\x85');  // a tuple of a tuple of …
  expect_pickle_refused("N" + deep + ".", "it holds a tuple", ErrorCode::kUnsupportedFeature);
  // A list in itself.
  expect_pickle_refused("]q\x01h\x01\x61.", "it holds a list", ErrorCode::kUnsupportedFeature);
  // Each tuple holds the one before twice.
  std::string doubling = "N";
  for (char i = 0; i < 100; ++i) doubling += std::string("q") + i + "h" + i + "\x86";
  expect_pickle_refused(doubling + ".", "it holds a tuple", ErrorCode::kUnsupportedFeature);
  expect_pickle_refused(std::string(2'000'000, 'N') + ".", "more objects than");
  expect_pickle_refused(std::string(2'000'000, '(') + ".", "more objects than");
  expect_pickle_refused("N" + std::string(5'000'000, '\x85') + ".", "more objects than");
}

TEST(TorchFile, rejects_tensors_outside_their_storage) {
  expect_tensor_refused(tensor(six(), 1, {6}, {1}), "reaches outside its storage of 6 elements");
  expect_tensor_refused(tensor(six(), 7, {1}, {1}), "reaches outside");
  expect_tensor_refused(tensor(six(), -1, {1}, {1}), "negative offset or stride");
  expect_tensor_refused(tensor(six(), 0, {2}, {-1}), "negative offset or stride");
  expect_tensor_refused(tensor(six(), std::numeric_limits<int64_t>::max(), {2}, {1}), "reaches outside");
  expect_tensor_refused(tensor(six(), 0, {2, 2}, {5, 1}), "reaches outside");
  expect_tensor_refused(tensor(six(), 0, {2, 2}, {std::numeric_limits<int64_t>::max(), 1}), "reaches outside");
  expect_tensor_refused(tensor(six(), 0, {-2}, {1}), "negative or overflows");
  expect_tensor_refused(tensor(six(), 0, {int64_t{1} << 40, int64_t{1} << 40}, {0, 0}), "negative or overflows");
  expect_tensor_refused(tensor(six(), 0, {2}, {2}), "repeat or leave out", ErrorCode::kUnsupportedFeature);
  expect_tensor_refused(tensor(six(), 0, {2, 3}, {0, 1}), "repeat or leave out", ErrorCode::kUnsupportedFeature);
  expect_tensor_refused(tensor(storage("ByteStorage", "1", 6), 0, {6}, {1}), "storage \"1\", which the file lacks");
  expect_tensor_refused(tensor(storage("ByteStorage", "0", 7), 0, {6}, {1}), "of 7 bytes, of which the file has 6");
  expect_tensor_refused(tensor(storage("ByteStorage", "../data.pkl", 6), 0, {6}, {1}), "which the file lacks");
}

TEST(TorchFile, rejects_other_files) {
  expect_file_refused("", "it is empty");
  expect_file_refused("hello", "does not begin like one");
  expect_file_refused("\x80\x02\x8a\x0a", "before version 1.6", ErrorCode::kUnsupportedFeature);
  expect_file_refused("PK", "zip");
  std::string one = tensor(six(), 0, {6}, {1});
  expect_file_refused(archive_of(state({{"w", one}, {"w", one}}), {{"data/0", "abcdef"}}), "it has tensor \"w\" twice");
  expect_file_refused(archive_of(state({}), {{"byteorder", "big"}}), "byte order", ErrorCode::kUnsupportedFeature);
  std::string other = archive_of(state({}), {});
  for (size_t at; (at = other.find("data.pkl")) != std::string::npos;) other.replace(at, 8, "data.txt");
  expect_file_refused(other, "has no data.pkl");
}

}  // namespace
}  // namespace argosy
