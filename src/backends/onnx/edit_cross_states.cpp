#include "backends/onnx/edit_cross_states.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "backends/onnx/edit.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

const int64_t* integer_attribute(const Node& node, std::string_view name) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name == name) return std::get_if<int64_t>(&attribute.value);
  }
  return nullptr;
}

/// Copies a part of one model's graph into a sub-graph of another.
class Transplant {
 public:
  Transplant(Model& to, const Model& from) : to_(to), from_(from) {
    const std::vector<Node>& nodes = from.graphs[0].nodes;
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (Ref output : nodes[i].outputs) {
        if (output.is_valid()) producer_[output] = i;
      }
    }
    for (const Initializer& each : from.initializers) weight_[each.value] = &each;
  }

  /// `value` of the other model is what `here` is in this one.
  void stands_for(Ref value, Ref here) { mapped_[value] = here; }
  /// Sizes of inputs of the other model are those of this value, where the names of dims say so.
  void take_sizes_from(Ref value) { sized_ = value; }

  /// The nodes that compute these values, in order, as they are to be added; `computed` are the values here.
  Result<std::vector<Node>> copy(const std::vector<Ref>& values, std::vector<Ref>& computed) {
    std::vector<size_t> needed;
    ARGOSY_TRY_STATUS(collect(values, needed));
    std::vector<Node> nodes;
    for (size_t index : needed) {
      const Node& node = from_.graphs[0].nodes[index];
      if (auto sizes = sizes_read(node)) {
        mapped_[node.outputs[0]] = add_sizes(*sizes, node.name, nodes);
        continue;
      }
      Node copied = node;
      for (Ref& input : copied.inputs) input = here(input);
      for (Ref& output : copied.outputs) {
        if (!output.is_valid()) continue;
        Value value = from_[output];
        value.name.clear();
        mapped_[output] = add_value(to_, std::move(value));
        output = mapped_[output];
      }
      nodes.push_back(std::move(copied));
    }
    for (Ref value : values) computed.push_back(here(value));
    return nodes;
  }

 private:
  struct SizeSource {
    int64_t number;
    int64_t dim;  // negative: it is the number
  };

  /// For each size that a Shape reads of a value that is not here: a number, or a dim of the value that sizes are taken
  /// from. Nothing if one of them is unknown.
  std::optional<std::vector<SizeSource>> sizes_read(const Node& node) const {
    if (node.op != "Shape" || mapped_.contains(node.inputs[0]) || weight_.contains(node.inputs[0])) return std::nullopt;
    const auto &theirs = from_[node.inputs[0]].shape, &ours = to_[sized_].shape;
    if (!theirs || !ours) return std::nullopt;
    auto rank = static_cast<int64_t>(theirs->size());
    auto bound = [&](std::string_view name, int64_t missing) {
      const int64_t* given = integer_attribute(node, name);
      int64_t value = given != nullptr ? *given : missing;
      return std::clamp(value < 0 ? value + rank : value, int64_t{0}, rank);
    };
    std::vector<SizeSource> sizes;
    for (int64_t dim = bound("start", 0), end = bound("end", rank); dim < end; ++dim) {
      const Dim& size = (*theirs)[static_cast<size_t>(dim)];
      if (const int64_t* number = std::get_if<int64_t>(&size)) {
        sizes.push_back({*number, -1});
        continue;
      }
      auto found = std::ranges::find(*ours, size);
      if (found == ours->end() || std::get<std::string>(size).empty()) return std::nullopt;
      sizes.push_back({0, found - ours->begin()});
    }
    return sizes;
  }

  Status collect(const std::vector<Ref>& values, std::vector<size_t>& needed) const {
    std::vector<Ref> open = values;
    std::vector<bool> is_needed(from_.graphs[0].nodes.size());
    while (!open.empty()) {
      Ref value = open.back();
      open.pop_back();
      if (!value.is_valid() || mapped_.contains(value) || weight_.contains(value)) continue;
      auto found = producer_.find(value);
      if (found == producer_.end()) {
        return fail(
            ErrorCode::kUnsupportedFeature,
            format("the states of cross attention depend on the encoder's input {}", quoted(from_[value].name)));
      }
      if (is_needed[found->second]) continue;
      const Node& node = from_.graphs[0].nodes[found->second];
      for (const Attribute& attribute : node.attributes) {
        if (std::holds_alternative<uint32_t>(attribute.value))
          return fail(ErrorCode::kUnsupportedFeature, "the states of cross attention are computed with control flow");
      }
      is_needed[found->second] = true;
      if (!sizes_read(node)) open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    for (size_t i = 0; i < is_needed.size(); ++i) {
      if (is_needed[i]) needed.push_back(i);
    }
    return {};
  }

  Ref here(Ref value) {
    if (!value.is_valid()) return value;
    auto [found, is_new] = mapped_.try_emplace(value);
    if (!is_new) return found->second;
    // What collect() let through and nothing computed is a weight.
    Value copy = from_[value];
    if (is_taken(copy.name)) copy.name.clear();
    found->second = add_value(to_, std::move(copy));
    to_.initializers.push_back({found->second, weight_.at(value)->tensor});
    return found->second;
  }

  bool is_taken(const std::string& name) const {
    return std::ranges::any_of(to_.values, [&](const Value& value) { return value.name == name; });
  }

  Ref add_sizes(const std::vector<SizeSource>& sizes, const std::string& name, std::vector<Node>& nodes) {
    std::vector<Ref> refs;
    for (const SizeSource& size : sizes) {
      if (size.dim < 0) {
        refs.push_back(add_ints(to_, {size.number}));
        continue;
      }
      refs.push_back(add_value(to_, {"", DType::kI64, {{Dim(int64_t{1})}}}));
      nodes.push_back({"Shape", "", {sized_}, {refs.back()}, {{"start", size.dim}, {"end", size.dim + 1}}, name});
    }
    if (refs.size() == 1) return refs[0];
    Ref all = add_value(to_, {"", DType::kI64, {{Dim(static_cast<int64_t>(refs.size()))}}});
    nodes.push_back({"Concat", "", std::move(refs), {all}, {{"axis", int64_t{0}}}, name});
    return all;
  }

  Model& to_;
  const Model& from_;
  std::map<Ref, size_t> producer_;
  std::map<Ref, const Initializer*> weight_;
  std::map<Ref, Ref> mapped_;
  Ref sized_;
};

uint32_t add_graph(Model& model, std::string name, std::vector<Node> nodes, std::vector<Ref> outputs) {
  model.graphs.push_back({std::move(name), {}, std::move(outputs), std::move(nodes)});
  return static_cast<uint32_t>(model.graphs.size() - 1);
}

/// A branch that gives values of the graph around it.
uint32_t add_passing_graph(Model& model, std::string name, const std::vector<Ref>& values) {
  std::vector<Node> nodes;
  std::vector<Ref> outputs;
  for (Ref value : values) {
    outputs.push_back(add_value(model, {"", model[value].dtype, model[value].shape}));
    nodes.push_back({"Identity", "", {value}, {outputs.back()}});
  }
  return add_graph(model, std::move(name), std::move(nodes), std::move(outputs));
}

}  // namespace

Status compute_cross_states(Model& decoder, const Model& encoder, std::string_view hidden_output,
                            std::string_view hidden_input, std::span<const CrossState> states, int dim) {
  Ref from = find_output(encoder, hidden_output), hidden = find_input(decoder, hidden_input);
  if (!from.is_valid()) return fail(no_such_port(encoder, "output", hidden_output));
  if (!hidden.is_valid()) return fail(no_such_port(decoder, "input", hidden_input));
  if (states.empty()) return fail(ErrorCode::kInvalidInput, "there are no states of cross attention");

  std::vector<Ref> wanted, inner, given;
  for (const CrossState& state : states) {
    wanted.push_back(find_output(encoder, state.computed));
    if (!wanted.back().is_valid()) return fail(no_such_port(encoder, "output", state.computed));
    inner.push_back(find_input(decoder, state.input));
    if (!inner.back().is_valid()) return fail(no_such_port(decoder, "input", state.input));
  }
  Transplant transplant(decoder, encoder);
  transplant.stands_for(from, hidden);
  transplant.take_sizes_from(hidden);
  std::vector<Ref> computed;
  ARGOSY_TRY(std::vector<Node> nodes, transplant.copy(wanted, computed));
  uint32_t compute = add_graph(decoder, "compute_cross_states", std::move(nodes), std::move(computed));

  for (size_t i = 0; i < states.size(); ++i) {
    given.push_back(split_input(decoder, inner[i]));
    auto& shape = decoder[given[i]].shape;
    if (shape && static_cast<size_t>(dim) < shape->size() && std::holds_alternative<int64_t>((*shape)[dim]))
      (*shape)[dim] = Dim("given_encoder_sequence");
    decoder[inner[i]].name = states[i].output;
    decoder.graphs[0].outputs.push_back(inner[i]);
  }
  uint32_t pass = add_passing_graph(decoder, "pass_cross_states", given);

  Ref length = add_value(decoder, {"", DType::kI64, {{Dim(int64_t{1})}}});
  Ref is_empty = add_value(decoder, {"", DType::kBool, {{Dim(int64_t{1})}}});
  std::vector<Node> front;
  front.push_back({"Shape", "", {given[0]}, {length}, {{"start", int64_t{dim}}, {"end", int64_t{dim} + 1}}});
  front.push_back({"Equal", "", {length, add_ints(decoder, {0})}, {is_empty}});
  front.push_back({"If", "", {is_empty}, inner, {{"then_branch", compute}, {"else_branch", pass}}});
  std::vector<Node>& root = decoder.graphs[0].nodes;
  root.insert(root.begin(), std::make_move_iterator(front.begin()), std::make_move_iterator(front.end()));
  return {};
}

}  // namespace argosy::onnx
