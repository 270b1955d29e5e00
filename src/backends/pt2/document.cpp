#include "backends/pt2/document.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "backends/pt2/sample_inputs.h"
#include "backends/pt2/type_writer.h"
#include "base/checked_math.h"
#include "base/text.h"
#include "io/pt2_format.h"

namespace argosy {
namespace {

bool is_shape_only(const TensorSource& source) { return source.recipe().starts_with("shape_only("); }

/// How a weight lies in memory: the order of dims in which it is packed, and its strides.
struct MemoryLayout {
  std::vector<int> order;
  std::vector<int64_t> strides;
};

std::vector<int64_t> packed_strides(const std::vector<int64_t>& shape, const std::vector<int>& order) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    size_t dim = static_cast<size_t>(order[i]);
    strides[dim] = stride;
    stride *= std::max<int64_t>(shape[dim], 1);
  }
  return strides;
}

/// The layout that the trace saw, if it is packed in some order of dims; else row-major. Kernels may choose another
/// algorithm for another layout, and round differently.
MemoryLayout layout_of(const Weight& weight, const TensorType& type) {
  MemoryLayout layout;
  layout.order.resize(weight.shape.size());
  std::iota(layout.order.begin(), layout.order.end(), 0);
  if (!type.strides.empty()) {
    std::vector<int64_t> wanted;
    for (SymExpr stride : type.strides) wanted.push_back(stride.as_integer().value_or(-1));
    std::vector<int> order = layout.order;
    std::ranges::stable_sort(
        order, [&](int a, int b) { return wanted[static_cast<size_t>(a)] > wanted[static_cast<size_t>(b)]; });
    if (packed_strides(weight.shape, order) == wanted) layout.order = order;
  }
  layout.strides = packed_strides(weight.shape, layout.order);
  return layout;
}

/// Adds entries for the tensors of one folder: data/weights/weight_N or data/constants/tensor_N.
class TensorFolder {
 public:
  TensorFolder(std::string root, std::string_view folder, std::string_view prefix)
      : root_(std::move(root)), folder_(folder), prefix_(prefix) {}

  /// The file name of a tensor's bytes; equal recipes share one.
  Result<std::string> add(const Weight& weight, const MemoryLayout& layout, const Pt2DocumentOptions& options,
                          Pt2Document& document) {
    TensorSourcePtr source = weight.source;
    if (element_count(weight.shape) == 0) {
      source = nullptr;
    } else if (is_shape_only(*source)) {
      if (options.missing_weights == MissingWeights::kRefuse) {
        return fail(ErrorCode::kNotFound, format("the bytes of weight {} are not known", quoted(weight.name)),
                    "give the checkpoint, or ask for an archive without weights");
      }
      source = nullptr;
    } else if (!std::ranges::is_sorted(layout.order)) {
      ARGOSY_TRY(source, transposed(source, layout.order));
    }
    // Tensors without bytes are told apart by their configs alone, but torch fills each file with zeros of one shape.
    std::string recipe = source == nullptr ? format("empty {}", weight.name) : source->recipe();
    auto [file, is_new] = files_.try_emplace(std::move(recipe), format("{}{}", prefix_, files_.size()));
    if (is_new) document.entries.push_back({format("{}{}{}", root_, folder_, file->second), "", std::move(source)});
    return file->second;
  }

 private:
  std::string root_;
  std::string_view folder_, prefix_;
  std::unordered_map<std::string, std::string> files_;
};

Status add_configs(const Program& program, const Component& component, const std::string& root, TensorFolder& weights,
                   TensorFolder& constants, const Pt2DocumentOptions& options, Pt2Document& document) {
  JsonWriter weights_config, constants_config;
  weights_config.begin_object().key("config").begin_object();
  constants_config.begin_object().key("config").begin_object();
  Pt2TypeWriter types(component);
  const Graph& graph = component.entry();
  for (ValueId value : graph.weights()) {
    const Weight& weight = program[graph[value].weight];
    const TensorType* type = graph[value].tensor();
    bool is_state = weight.kind == WeightKind::kParameter || weight.kind == WeightKind::kBuffer;
    MemoryLayout layout = layout_of(weight, *type);
    ARGOSY_TRY(std::string file, (is_state ? weights : constants).add(weight, layout, options, document));
    JsonWriter& json = is_state ? weights_config : constants_config;
    json.key(weight_name_in(component, weight.name)).begin_object().key("path_name").value(file);
    json.key("is_param").value(weight.kind == WeightKind::kParameter).key("use_pickle").value(false);
    json.key("tensor_meta");
    ARGOSY_TRY_STATUS(types.tensor(json, weight.dtype, weight.shape, layout.strides,
                                   requires_grad(program, component, graph[value].weight)));
    json.end_object();
  }
  weights_config.end_object().end_object();
  constants_config.end_object().end_object();
  document.entries.push_back(
      {format("{}{}{}_weights_config.json", root, kPt2Weights, component.name), weights_config.take(), nullptr});
  document.entries.push_back(
      {format("{}{}{}_constants_config.json", root, kPt2Constants, component.name), constants_config.take(), nullptr});
  return {};
}

}  // namespace

void Pt2Document::add_extra(std::string_view name, std::string text) {
  entries.push_back({format("{}{}{}", root, kPt2Extra, name), std::move(text), nullptr});
}

uint64_t Pt2Document::content_bytes() const {
  uint64_t bytes = 0;
  for (const Entry& entry : entries) {
    bytes += entry.source == nullptr ? entry.text.size() : static_cast<uint64_t>(entry.source->bytes());
  }
  return bytes;
}

std::string_view weight_name_in(const Component& component, std::string_view name) {
  size_t prefix = component.name.size();
  if (name.size() > prefix + 1 && name.starts_with(component.name) && name[prefix] == '/')
    name.remove_prefix(prefix + 1);
  return name;
}

bool requires_grad(const Program& program, const Component& component, WeightId id) {
  const Weight& weight = program[id];
  DTypeKind kind = kind_of(weight.dtype);
  if (weight.kind != WeightKind::kParameter || (kind != DTypeKind::kFloat && kind != DTypeKind::kComplex)) return false;
  auto frozen = component.attributes.find(std::string(kPt2Frozen));
  if (frozen == component.attributes.end()) return true;
  if (frozen->second == "*") return false;
  std::string line = format("\n{}\n", weight_name_in(component, weight.name));
  return ("\n" + frozen->second).find(line) == std::string::npos;
}

Result<Pt2Document> build_pt2_document(const Program& program, const Pt2DocumentOptions& options) {
  if (options.root.empty()) return fail(ErrorCode::kInvalidInput, "an archive needs a file name");
  Pt2Document document;
  document.root = options.root + "/";
  const std::string& root = document.root;
  if (program.components.empty()) return fail(ErrorCode::kInvalidInput, "the program has no component to write");
  auto add_text = [&](std::string_view name, std::string text) {
    document.entries.push_back({format("{}{}", root, name), std::move(text), nullptr});
  };
  add_text(kPt2FormatEntry, "pt2");
  add_text(kPt2ByteOrderEntry, "little");
  TensorFolder weights(root, kPt2Weights, "weight_");
  TensorFolder constants(root, kPt2Constants, "tensor_");
  for (const Component& component : program.components) {
    ARGOSY_TRY_STATUS(add_configs(program, component, root, weights, constants, options, document));
    ARGOSY_TRY(std::string graph, write_graph_json(program, component));
    add_text(format("{}{}.json", kPt2Models, component.name), std::move(graph));
    std::string sample = format("{}{}{}.pt", root, kPt2SampleInputs, component.name);
    auto found = options.sample_inputs.find(component.name);
    if (found != options.sample_inputs.end()) {
      document.entries.push_back({std::move(sample), "", found->second});
    } else {
      ARGOSY_TRY(std::string made, torch_sample_inputs(component));
      document.entries.push_back({std::move(sample), std::move(made), nullptr});
    }
  }
  add_text(kPt2VersionEntry, "0");
  add_text(".data/version", "6\n");
  return document;
}

}  // namespace argosy
