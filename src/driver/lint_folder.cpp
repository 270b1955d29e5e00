#include "driver/lint_folder.h"

#include <set>

#include "backends/executorch/read.h"
#include "tensor/dtype.h"

namespace argosy {
namespace {

using engines::LintedProgram;

LintedProgram::Tensor tensor_of(const executorch::Value& value) {
  const auto* tensor = std::get_if<executorch::Tensor>(&value);
  if (tensor == nullptr) return {};
  return {std::string(to_text(tensor->dtype)), {tensor->sizes.begin(), tensor->sizes.end()}};
}

LintedProgram::Method method_of(const executorch::Method& method) {
  LintedProgram::Method result;
  result.name = method.name;
  auto value = [&](executorch::ValueIndex index) -> const executorch::Value& {
    return method.values[static_cast<size_t>(index)];
  };
  for (executorch::ValueIndex index : method.inputs) result.inputs.push_back(tensor_of(value(index)));
  for (executorch::ValueIndex index : method.outputs) result.outputs.push_back(tensor_of(value(index)));
  for (const executorch::KernelName& kernel : method.kernels)
    result.kernels.push_back(kernel.overload.empty() ? kernel.name : kernel.name + "." + kernel.overload);
  if (!method.inputs.empty() || !method.instructions.empty()) return result;
  for (executorch::ValueIndex index : method.outputs) {
    const executorch::Value& given = value(index);
    if (const auto* number = std::get_if<int64_t>(&given)) result.constants.emplace_back(*number);
    if (const auto* flag = std::get_if<bool>(&given)) result.constants.emplace_back(*flag);
    if (const auto* real = std::get_if<double>(&given)) result.constants.emplace_back(*real);
    if (const auto* text = std::get_if<std::string>(&given)) result.constants.emplace_back(*text);
  }
  return result;
}

LintedProgram read_linted(const std::filesystem::path& path) {
  LintedProgram program;
  auto file = executorch::read_program(path);
  if (!file) {
    program.problem = file.error().message;
    return program;
  }
  std::set<std::string> inside, outside;
  for (const executorch::StoredData& data : file->data) inside.insert(data.key);
  for (const executorch::Method& method : file->methods) {
    program.methods.push_back(method_of(method));
    for (const executorch::Value& value : method.values) {
      const auto* tensor = std::get_if<executorch::Tensor>(&value);
      if (tensor != nullptr && !tensor->key.empty() && !inside.contains(tensor->key)) outside.insert(tensor->key);
    }
  }
  program.external_data.assign(outside.begin(), outside.end());
  return program;
}

}  // namespace

Result<engines::LintReport> lint_folder(const std::filesystem::path& folder, std::string_view engine) {
  return engines::lint(folder, engine, read_linted);
}

}  // namespace argosy
