#include "backends/onnx/mixed_half.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "backends/onnx/kernel_types.h"
#include "backends/onnx/lowering.h"
#include "backends/onnx/names.h"
#include "base/check.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

class Narrower {
 public:
  Narrower(Model& model, const HalfPlan& plan)
      : model_(model), plan_(plan), half_of_(model.values.size()), is_read_as_f32_(model.values.size()) {
    for (size_t i = 0; i < model.initializers.size(); ++i) constants_[model.initializers[i].value] = i;
    for (size_t graph = 0; graph < model.graphs.size(); ++graph) {
      for (Ref ref : model.graphs[graph].outputs) is_read_as_f32_[ref.index] = true;
      for (size_t i = 0; i < model.graphs[graph].nodes.size(); ++i) {
        const Node& node = model.graphs[graph].nodes[i];
        bool is_half = plan.of(graph, i) == Precision::kHalf;
        for (Ref ref : node.inputs) {
          if (!is_half && ref.is_valid()) is_read_as_f32_[ref.index] = true;
        }
        for (Ref ref : node.outputs) {
          if (is_half && is_single(model, ref)) half_of_[ref.index] = add_half(ref);
        }
      }
    }
  }

  Status run() {
    for (size_t graph = 0; graph < model_.graphs.size(); ++graph) ARGOSY_TRY_STATUS(rewrite(graph));
    std::vector<Node>& first = model_.graphs[0].nodes;
    first.insert(first.begin(), std::move_iterator(widened_nodes_.begin()), std::move_iterator(widened_nodes_.end()));
    eliminate_dead_nodes(model_);
    return {};
  }

 private:
  Ref add_value(Value value) {
    model_.values.push_back(std::move(value));
    return Ref{static_cast<uint32_t>(model_.values.size() - 1)};
  }

  Ref add_half(Ref ref) {
    Value value = model_[ref];
    value.dtype = DType::kF16;
    if (!value.name.empty()) value.name += "_f16";
    return add_value(std::move(value));
  }

  static Node cast(Ref from, Ref to, DType dtype, const std::string& place) {
    return {"Cast", "", {from}, {to}, {{"to", int64_t{onnx_type(dtype)}}}, place};
  }

  Status rewrite(size_t graph) {
    std::vector<Node> nodes = std::move(model_.graphs[graph].nodes), made;
    std::map<Ref, Ref> narrowed;  // casts of this graph
    for (size_t i = 0; i < nodes.size(); ++i) {
      Node& node = nodes[i];
      std::vector<Node> after;
      Precision precision = plan_.of(graph, i);
      if (precision == Precision::kHalf) {
        for (Ref& input : node.inputs) {
          if (!is_single(model_, input)) continue;
          ARGOSY_TRY(input, half(input, narrowed, made, node.name));
        }
        for (Ref& output : node.outputs) {
          if (!is_single(model_, output)) continue;
          Ref narrow = half_of_[output.index];
          if (is_read_as_f32_[output.index]) after.push_back(cast(narrow, output, DType::kF32, node.name));
          output = narrow;
        }
      } else if (precision == Precision::kValue || precision == Precision::kUnseen) {
        for (Ref& input : node.inputs) {
          ARGOSY_TRY(input, widened(input));
        }
      }
      made.push_back(std::move(node));
      std::ranges::move(after, std::back_inserter(made));
    }
    model_.graphs[graph].nodes = std::move(made);
    return {};
  }

  Result<Ref> half(Ref ref, std::map<Ref, Ref>& narrowed, std::vector<Node>& made, const std::string& place) {
    if (constants_.contains(ref)) return half_constant(ref);
    if (half_of_[ref.index].is_valid()) return half_of_[ref.index];
    auto [found, is_new] = narrowed.try_emplace(ref);
    if (is_new) {
      found->second = add_half(ref);
      made.push_back(cast(ref, found->second, DType::kF16, place));
    }
    return found->second;
  }

  Result<Ref> half_constant(Ref ref) {
    auto [found, is_new] = half_constants_.try_emplace(ref);
    if (is_new) {
      ARGOSY_TRY(TensorSourcePtr source, converted(model_.initializers[constants_.at(ref)].tensor, DType::kF16));
      Value value = model_[ref];  // its name is free if nothing reads the wider one
      value.dtype = DType::kF16;
      found->second = add_value(std::move(value));
      model_.initializers.push_back({found->second, std::move(source)});
    }
    return found->second;
  }

  /// A matrix of the model's that is stored as f16 and read as f32; others as they are.
  Result<Ref> widened(Ref ref) {
    auto constant = constants_.find(ref);
    if (constant == constants_.end() || !is_single(model_, ref)) return ref;
    if (model_.initializers[constant->second].tensor->shape().size() < 2) return ref;
    auto [found, is_new] = widened_.try_emplace(ref);
    if (is_new) {
      ARGOSY_TRY(Ref narrow, half_constant(ref));
      Value value = model_[ref];
      value.name += "_f32";
      found->second = add_value(std::move(value));
      widened_nodes_.push_back(cast(narrow, found->second, DType::kF32, ""));
    }
    return found->second;
  }

  Model& model_;
  const HalfPlan& plan_;
  std::vector<Ref> half_of_;          // of values that are computed in f16, by Ref::index
  std::vector<bool> is_read_as_f32_;  // by Ref::index
  std::map<Ref, size_t> constants_;
  std::map<Ref, Ref> half_constants_, widened_;
  std::vector<Node> widened_nodes_;
};

TensorSourcePtr literal_of(DType dtype, std::vector<std::byte> bytes, std::vector<int64_t> shape) {
  auto made = literal(std::move(bytes), dtype, std::move(shape));
  ARGOSY_CHECK(made, "a literal of a wrong size");
  return *std::move(made);
}

}  // namespace

std::string half_text(const HalfPlan& plan, bool has_seen) {
  auto products = [&](Precision precision) {
    auto found = plan.products.find(precision);
    return found == plan.products.end() ? size_t{0} : found->second;
  };
  size_t all = 0;
  for (const auto& [precision, count] : plan.products) all += count;
  std::string text = format("{} of {} products compute in float16", products(Precision::kHalf), all);
  if (size_t count = products(Precision::kStructure)) text += format(", {} in float32 by the graph's structure", count);
  if (size_t count = plan.count(Precision::kWeight))
    text += format("; {} nodes stay float32 as a weight or constant does not fit", count);
  if (size_t count = plan.count(Precision::kValue)) {
    text += format("; {} nodes stay float32 as values up to {:.3g} were seen, the largest at {}", count, plan.largest,
                   plan.largest_at.empty() ? "no module" : plan.largest_at);
  }
  if (size_t count = plan.count(Precision::kUnseen))
    text += format("; {} nodes of loops and branches stay float32, as values there were not seen", count);
  if (!has_seen) text += "; no values were seen, so structure alone decided";
  return text;
}

Status narrow_to_half(Model& model, const std::map<std::string, double>* seen) {
  ARGOSY_TRY(HalfPlan plan, plan_half(model, seen));
  ARGOSY_TRY_STATUS(Narrower(model, plan).run());
  model.metadata[std::string(kMixedHalfKey)] = half_text(plan, seen != nullptr);
  return {};
}

Status observe_values(Model& model) {
  ARGOSY_TRY(std::vector<Ref> candidates, half_candidates(model));
  Model named = model;
  name_model(named);
  auto add_value = [&](DType dtype, std::string name = "") {
    model.values.push_back({std::move(name), dtype, std::nullopt});
    return Ref{static_cast<uint32_t>(model.values.size() - 1)};
  };
  auto add_constant = [&](DType dtype, std::vector<std::byte> bytes) {
    Ref ref = add_value(dtype);
    model.initializers.push_back({ref, literal_of(dtype, std::move(bytes), {1})});
    return ref;
  };
  const int64_t all = -1;
  std::vector<std::byte> all_bytes(sizeof(all));
  std::memcpy(all_bytes.data(), &all, sizeof(all));
  Ref flat = add_constant(DType::kI64, std::move(all_bytes));
  Ref zero = add_constant(DType::kF32, std::vector<std::byte>(sizeof(float)));
  Graph& graph = model.graphs[0];
  auto add_node = [&](const char* op, std::vector<Ref> inputs, std::vector<Attribute> attributes, Ref output) {
    graph.nodes.push_back({op, "", std::move(inputs), {output}, std::move(attributes), ""});
    return output;
  };
  for (Ref ref : candidates) {
    Ref size = add_node("Abs", {ref}, {}, add_value(DType::kF32));
    Ref row = add_node("Reshape", {size, flat}, {}, add_value(DType::kF32));
    // Tensors may be empty, and nothing has no largest element.
    Ref more = add_node("Concat", {row, zero}, {{"axis", int64_t{0}}}, add_value(DType::kF32));
    Ref largest = add_value(DType::kF32, format("{}{}", kSeenPrefix, named[ref].name));
    model[largest].shape = std::vector<Dim>{};
    graph.outputs.push_back(add_node("ReduceMax", {more}, {{"keepdims", int64_t{0}}}, largest));
  }
  return {};
}

}  // namespace argosy::onnx
