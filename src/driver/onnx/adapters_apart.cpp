#include "driver/onnx/adapters_apart.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "base/text.h"

namespace argosy {
namespace {

/// Zeros of rank 1: with them every kernel computes the model as it is.
Result<TensorSourcePtr> default_of(const onnx::Value& input) {
  std::vector<int64_t> shape;
  for (const onnx::Dim& dim : *input.shape)
    shape.push_back(std::holds_alternative<int64_t>(dim) ? std::get<0>(dim) : 1);
  ARGOSY_TRY(int64_t bytes, checked_tensor_bytes(*input.dtype, shape));
  return literal(std::vector<std::byte>(static_cast<size_t>(bytes)), *input.dtype, std::move(shape));
}

}  // namespace

Result<AdaptersApart> AdaptersApart::find(const ExportInput& input) {
  AdaptersApart found;
  auto is_of_adapter = [](const PlannedWeight& weight) { return weight.name.starts_with(kAdapterWeights); };
  if (input.plan == nullptr || std::ranges::none_of(input.plan->weights(), is_of_adapter)) return found;
  ARGOSY_TRY(std::vector<TensorSourcePtr> sources, input.plan->sources(*input.checkpoint));
  std::map<std::string, std::vector<NamedSource>> by_name;
  for (size_t i = 0; i < sources.size(); ++i) {
    const PlannedWeight& weight = input.plan->weights()[i];
    if (!is_of_adapter(weight)) continue;
    std::string rest = weight.name.substr(kAdapterWeights.size());
    size_t end = rest.find(':');
    if (end == std::string::npos || end == 0)
      return fail(ErrorCode::kCorruptFile, format("the weight plan has {}, without an adapter", quoted(weight.name)),
                  "plan again");
    if (weight.shape.size() != 2)
      return fail(ErrorCode::kCorruptFile, format("{} of the weight plan is no matrix", quoted(weight.name)),
                  "plan again");
    // As products have them: [in, rank] and [rank, out].
    ARGOSY_TRY(TensorSourcePtr turned, transposed(std::move(sources[i]), {1, 0}));
    by_name[rest.substr(0, end)].push_back({rest.substr(end + 1), std::move(turned)});
  }
  for (auto& [name, tensors] : by_name) found.adapters_.push_back({name, std::move(tensors)});
  return found;
}

Status AdaptersApart::check(const engines::Engine& engine, const engines::BundlePlan& plan, bool is_folder) const {
  if (!are_any()) return {};
  if (!engine.limits.switches_adapters || !is_folder) {
    return fail(ErrorCode::kInvalidInput, format("{} does not switch adapters", engine.title),
                "add --for genai, or merge an adapter: --adapter");
  }
  if (plan.graphs.size() != 1) {
    return fail(
        ErrorCode::kUnsupportedFeature,
        format("{} switches adapters of models of one graph, and this one has {}", engine.title, plan.graphs.size()),
        "merge an adapter: --adapter");
  }
  return {};
}

void AdaptersApart::add_edit(std::vector<Edit>& edits) const {
  std::set<std::string> modules;
  for (const Adapter& adapter : adapters_) {
    const std::string suffix = adapter_input("", AdapterMatrix::kDown);
    for (const NamedSource& tensor : adapter.tensors) {
      if (tensor.name.ends_with(suffix)) modules.insert(tensor.name.substr(0, tensor.name.size() - suffix.size()));
    }
  }
  if (are_any()) edits.emplace_back(AttachAdapters{{modules.begin(), modules.end()}});
}

Status AdaptersApart::complete(onnx::Model& model) {
  if (!are_any()) return {};
  std::map<std::string, onnx::Ref> inputs;
  for (onnx::Ref input : model.graphs.front().inputs) inputs.emplace(model[input].name, input);
  std::set<std::string> done;
  for (Adapter& adapter : adapters_) {
    for (NamedSource& tensor : adapter.tensors) {
      auto found = inputs.find(tensor.name);
      ARGOSY_CHECK(found != inputs.end(), "a graph without the input " + tensor.name);
      const onnx::Value& value = model[found->second];
      ARGOSY_TRY(tensor.source, converted(std::move(tensor.source), *value.dtype));
      if (!done.insert(tensor.name).second) continue;
      ARGOSY_TRY(TensorSourcePtr zeros, default_of(value));
      model.initializers.push_back({found->second, std::move(zeros)});
    }
    ARGOSY_TRY(adapter.layout, lay_out_adapter(adapter.tensors));
  }
  return {};
}

std::vector<ManifestAdapter> AdaptersApart::manifest() const {
  std::vector<ManifestAdapter> entries;
  for (const Adapter& adapter : adapters_) entries.push_back({adapter.name, adapter.file()});
  return entries;
}

std::vector<std::string> AdaptersApart::summary() const {
  std::vector<std::string> lines;
  for (const Adapter& adapter : adapters_)
    lines.push_back(format("the adapter {} is {}, for {} layers: none is active unless the engine is told to",
                           quoted(adapter.name), adapter.file(), adapter.tensors.size() / 2));
  return lines;
}

void AdaptersApart::list_files(std::vector<ExportFile>& files) const {
  for (const Adapter& adapter : adapters_) files.push_back({adapter.file(), {}, adapter.layout.total_bytes});
}

Status AdaptersApart::write(const std::filesystem::path& folder, size_t scratch_bytes) const {
  for (const Adapter& adapter : adapters_) {
    ARGOSY_TRY(OutputFile file, OutputFile::create(folder / adapter.file(), Overwrite::kRefuse));
    ARGOSY_TRY_STATUS(write_adapter(adapter.layout, file, scratch_bytes));
    ARGOSY_TRY_STATUS(file.commit());
  }
  return {};
}

}  // namespace argosy
