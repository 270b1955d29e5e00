// Writes small programs, made by hand, into a folder: what tests/executorch/test_container.py runs.
//   argosy_write_programs FOLDER
#include <bit>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "backends/executorch/memory_plan.h"
#include "backends/executorch/writer.h"
#include "base/error.h"

namespace argosy::executorch {
namespace {

TensorSourcePtr floats(std::vector<float> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return *literal(std::move(bytes), DType::kF32, {static_cast<int64_t>(values.size())});
}

Tensor tensor(std::vector<int32_t> sizes, bool is_dynamic = false, DType dtype = DType::kF32) {
  return {.dtype = dtype, .sizes = std::move(sizes), .is_dynamic = is_dynamic};
}

Tensor stored(Storage storage, std::vector<int32_t> sizes, std::string key) {
  Tensor result = tensor(std::move(sizes));
  result.storage = storage;
  result.key = std::move(key);
  return result;
}

Method getter(std::string name, std::vector<Value> values, std::vector<ValueIndex> outputs) {
  return {.name = std::move(name), .values = std::move(values), .outputs = std::move(outputs)};
}

/// x of up to 4 rows, plus a row; and constants of every kind as methods.
Document add_document() {
  Method forward{.name = "forward", .inputs = {0}, .outputs = {3}};
  forward.values = {tensor({4, 8}, true), stored(Storage::kConstant, {8}, "weight"), int64_t{1}, tensor({4, 8}, true)};
  forward.kernels = {{"aten::add", "out"}};
  forward.instructions = {KernelCall{0, {0, 1, 2, 3, 3}}};
  Document document{.methods = {forward}, .data = {{"weight", floats({0, 1, 2, 3, 4, 5, 6, 7})}}};
  document.methods.push_back(getter("get_max_seq_len", {int64_t{128}}, {0}));
  document.methods.push_back(getter("use_kv_cache", {true}, {0}));
  document.methods.push_back(getter("get_scale", {0.125}, {0}));
  document.methods.push_back(getter("get_eos_ids", {int64_t{2}, int64_t{3}}, {0, 1}));
  document.methods.push_back(getter("get_sizes", {int64_t{5}, int64_t{6}, IntValues{{0, 1}}}, {2}));
  return document;
}

/// Adds x to what it holds, which begins with a value, and counts calls in a state that begins with zeros.
Document state_document() {
  Method forward{.name = "forward", .inputs = {0}, .outputs = {4, 6}};
  forward.values = {tensor({4}), stored(Storage::kState, {4}, "sum"), int64_t{1}, false,
                    tensor({4}), stored(Storage::kState, {1}, ""),    tensor({1})};
  forward.kernels = {{"aten::add", "out"}, {"aten::copy_", ""}, {"aten::add", "Scalar_out"}};
  forward.instructions = {KernelCall{0, {1, 0, 2, 4, 4}}, KernelCall{1, {1, 4, 3, 1}}, KernelCall{2, {5, 2, 2, 6, 6}},
                          KernelCall{1, {5, 6, 3, 5}}};
  return {.methods = {forward}, .data = {{"sum", floats({1, 2, 3, 4})}}};
}

/// One piece of data as a vector and as a matrix, as a constant and as a state; lists; an alias; data that no tensor
/// takes; a piece of nothing at the end.
Document shared_document() {
  Method forward{.name = "forward", .inputs = {0}, .outputs = {8, 9}};
  Tensor flat = tensor({8});
  flat.alias_of = 7;
  forward.values = {tensor({2, 2}),
                    stored(Storage::kConstant, {4}, "shared"),
                    stored(Storage::kConstant, {2, 2}, "shared"),
                    stored(Storage::kState, {2, 2}, "shared"),
                    TensorValues{{0, 2}},
                    int64_t{0},
                    int64_t{1},
                    tensor({4, 2}),
                    flat,
                    tensor({4, 2}),
                    TensorValues{{2, 3}},
                    stored(Storage::kConstant, {0}, "nothing")};
  forward.kernels = {{"aten::cat", "out"}};
  forward.instructions = {KernelCall{0, {4, 5, 7, 7}}, KernelCall{0, {10, 5, 9, 9}}};
  return {.methods = {forward},
          .data = {{"of a delegate", floats(std::vector<float>(1000, 1.F))},
                   {"shared", floats({10, 20, 30, 40})},
                   {"nothing", floats({})}}};
}

/// A loop: doubles x until its first element is at least 100, at least once.
Document loop_document() {
  Method forward{.name = "forward", .inputs = {0}, .outputs = {1}};
  forward.values = {tensor({1}), tensor({1}), tensor({1}, false, DType::kBool), false, 1.0, false, 100.0,
                    tensor({1}), int64_t{1}};
  forward.kernels = {
      {"aten::add", "out"}, {"aten::copy_", ""}, {"aten::ge", "Scalar_out"}, {"aten::_local_scalar_dense", ""}};
  forward.instructions = {KernelCall{1, {7, 0, 3, 7}}, KernelCall{0, {7, 7, 8, 1, 1}}, KernelCall{1, {7, 1, 3, 7}},
                          KernelCall{2, {1, 6, 2, 2}}, KernelCall{3, {2, 5}},          JumpIfFalse{5, 1}};
  return {.methods = {forward}};
}

Status write(const std::filesystem::path& folder, const std::string& name, Document document, DataPlace place) {
  for (Method& method : document.methods) ARGOSY_TRY_STATUS(plan_memory(method));
  ARGOSY_TRY(Layout layout, Layout::build(std::move(document), place));
  auto program = folder / (name + ".pte"), data = folder / (name + ".ptd");
  ARGOSY_TRY_STATUS(layout.write(program, data, {.threads = 2}));
  bool has_right_sizes = std::filesystem::file_size(program) == layout.program_bytes() &&
                         (place == DataPlace::kInside || std::filesystem::file_size(data) == layout.data_bytes());
  if (!has_right_sizes) return fail(ErrorCode::kInternal, name + " has another size than its layout says");
  return {};
}

Status write_all(const std::filesystem::path& folder) {
  ARGOSY_TRY_STATUS(write(folder, "add", add_document(), DataPlace::kInside));
  ARGOSY_TRY_STATUS(write(folder, "add_beside", add_document(), DataPlace::kBeside));
  ARGOSY_TRY_STATUS(write(folder, "state", state_document(), DataPlace::kInside));
  ARGOSY_TRY_STATUS(write(folder, "state_beside", state_document(), DataPlace::kBeside));
  ARGOSY_TRY_STATUS(write(folder, "shared", shared_document(), DataPlace::kInside));
  ARGOSY_TRY_STATUS(write(folder, "shared_beside", shared_document(), DataPlace::kBeside));
  return write(folder, "loop", loop_document(), DataPlace::kInside);
}

}  // namespace
}  // namespace argosy::executorch

int main(int count, char** arguments) {
  if (count != 2) return 2;
  if (argosy::Status status = argosy::executorch::write_all(arguments[1]); !status) {
    std::fprintf(stderr, "%s\n", argosy::to_text(status.error()).c_str());
    return 1;
  }
  return 0;
}
