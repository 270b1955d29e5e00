#include "backends/executorch/generation/caches.h"

#include <algorithm>

#include "base/text.h"
#include "io/json.h"
#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"

namespace argosy::executorch {
namespace {

// The result stands for the cache, so that its readers come after the write. The kernel's own result means nothing.
constexpr std::string_view kUpdateCache =
    "llama::update_cache(Tensor value, Tensor(a!) cache, SymInt start_pos) -> Tensor(a!)";

class StateKeeper {
 public:
  StateKeeper(DecoderCall& call, bool use_custom_op) : call_(call), use_custom_op_(use_custom_op) {}

  Status keep(const CacheState& state) {
    auto input = std::ranges::find(call_.component.inputs, state.input, &InputSpec::name);
    if (input == call_.component.inputs.end() || !input->value.is_valid()) return missing(state.input);
    ValueId value = input->value;
    auto output = std::ranges::find(call_.component.outputs, state.output, &OutputSpec::name);
    if (output == call_.component.outputs.end()) return missing(state.output);
    auto output_index = static_cast<size_t>(output - call_.component.outputs.begin());
    const TensorType type{call_.type(value).dtype, call_.type(value).shape, {}};
    std::optional<size_t> growing;
    for (size_t i = 0; i < type.shape.size(); ++i) {
      if (type.shape[i].as_integer()) continue;
      if (growing || type.shape[i] != call_.past())
        return fail(ErrorCode::kUnsupportedFeature, format("{} varies in a way that is not known", state.input));
      growing = i;
    }
    if (growing) {
      ARGOSY_TRY_STATUS(keep_growing(state, value, type, *growing));
      drop_output(output_index);
    } else {
      ARGOSY_TRY_STATUS(keep_whole(state, value, type, output_index));
    }
    call_.rewriter.erase_input(value);
    std::erase_if(call_.component.inputs, [&](const InputSpec& spec) { return spec.name == state.input; });
    return {};
  }

  Result<ValueId> keep_row(const std::string& name, ValueId added) {
    ARGOSY_TRY(ValueId buffer,
               add_buffer(name, {call_.type(added).dtype, {call_.integer(1), call_.integer(call_.largest)}, {}}));
    return call_.top().slice(put(call_.top(), buffer, added, 1), 1, 0, call_.total);
  }

  std::map<uint32_t, CachedKeys> take() { return std::move(keys_); }

 private:
  static Status missing(const std::string& name) {
    return fail(ErrorCode::kCorruptFile, format("the capture's cache has {}, which the component lacks", name));
  }

  void drop_output(size_t index) {
    std::vector<Argument> outputs(call_.graph().outputs().begin(), call_.graph().outputs().end());
    outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(index));
    call_.rewriter.set_outputs(std::move(outputs));
    call_.component.outputs.erase(call_.component.outputs.begin() + static_cast<std::ptrdiff_t>(index));
  }

  Result<ValueId> add_buffer(const std::string& name, const TensorType& type) {
    Weight weight;
    weight.name = "cache." + name;
    while (call_.program.find_weight(weight.name)) weight.name += "_";
    weight.kind = WeightKind::kBuffer;
    weight.dtype = type.dtype;
    for (SymExpr size : type.shape) weight.shape.push_back(*size.as_integer());
    ARGOSY_TRY(weight.source, shape_only(type.dtype, weight.shape, weight.name));
    WeightId id{static_cast<uint32_t>(call_.program.weights.size())};
    buffer_name_ = weight.name;
    call_.program.weights.push_back(std::move(weight));
    return call_.rewriter.add_weight({"cache_" + name, type}, id);
  }

  /// The cache after what is added was written at the call's positions of a dim.
  ValueId put(AtenBuilder& f, ValueId cache, ValueId added, size_t dim) {
    ValueList indices(dim);
    indices.push_back(call_.positions);
    return f.node(aten::kIndexPutInPlace, {{"self", cache}, {"indices", std::move(indices)}, {"values", added}},
                  f.dtype(cache), f.shape(cache));
  }

  Status keep_growing(const CacheState& state, ValueId value, const TensorType& type, size_t dim) {
    bool has_heads_last = use_custom_op_ && type.shape.size() == 4 && dim == 2;
    TensorType full = type;
    full.shape[dim] = call_.integer(call_.largest);
    if (has_heads_last) std::swap(full.shape[1], full.shape[2]);
    NodeId join;
    for (const Use& use : call_.graph()[value].uses) {
      if (!use.node.is_valid() || !is_join(call_.graph()[use.node], value, dim)) continue;
      join = use.node;
      break;
    }
    if (!join.is_valid()) {
      return fail(ErrorCode::kUnsupportedFeature, format("{} does not grow by the tokens of a call", state.input),
                  "please report the model; export it without a task, or for another engine");
    }
    ARGOSY_TRY(ValueId buffer, add_buffer(state.input, full));
    AtenBuilder& f = call_.before(join);
    ValueId added = std::get<ValueList>(call_.graph()[join].arguments[0].variant())[1];
    ValueId written =
        has_heads_last
            ? f.value(kUpdateCache,
                      {{"value", call_.swap_middle(added)}, {"cache", buffer}, {"start_pos", call_.start}}, full)
            : put(f, buffer, added, dim);
    ValueId all = read(f, written, has_heads_last, dim, call_.total);
    keys_[all.index] = {written, has_heads_last};
    ValueId joined = call_.graph()[join].outputs[0];
    call_.rewriter.replace_uses(joined, all);
    call_.rewriter.erase(join);
    // Other readers of past tokens read them from the cache, where the call does not change them.
    if (!call_.graph()[value].uses.empty()) {
      Use first = call_.graph()[value].uses.front();
      for (const Use& use : call_.graph()[value].uses) {
        if (!use.node.is_valid()) return missing(state.output);
        if (call_.graph().comes_before(use.node, first.node)) first = use;
      }
      bool is_after = call_.graph().comes_before(call_.graph()[all].producer, first.node);
      call_.rewriter.replace_uses(
          value, read(call_.before(first.node), is_after ? written : buffer, has_heads_last, dim, call_.past()));
    }
    return {};
  }

  bool is_join(const Node& node, ValueId value, size_t dim) const {
    if (call_.program.schemas[node.op].name != "aten.cat.default" || node.arguments.size() < 2) return false;
    const auto& tensors = std::get<ValueList>(node.arguments[0].variant());
    const auto* joined = node.arguments[1].get_if<int64_t>();
    size_t rank = call_.graph()[value].tensor()->shape.size();
    if (tensors.size() != 2 || tensors[0] != value || joined == nullptr || wrap_dim(*joined, rank) != dim) return false;
    return call_.graph()[tensors[1]].tensor()->shape[dim] == call_.sequence;
  }

  ValueId read(AtenBuilder& f, ValueId cache, bool has_heads_last, size_t dim, SymExpr size) {
    ValueId part = f.slice(cache, has_heads_last ? 1 : static_cast<int64_t>(dim), 0, size);
    return has_heads_last ? call_.swap_middle(part) : part;
  }

  Status keep_whole(const CacheState& state, ValueId value, const TensorType& type, size_t output_index) {
    ARGOSY_TRY(ValueId buffer, add_buffer(state.input, type));
    AtenBuilder& f = call_.top();
    if (!has_begun_.is_valid()) {
      has_begun_ = f.compare("gt", f.slice_between(call_.positions, 0, int64_t{0}, int64_t{1}, f.one()), int64_t{0});
    }
    call_.rewriter.replace_uses(
        value, f.node(aten::kWhereScalarOther, {{"condition", has_begun_}, {"self", buffer}, {"other", 0.0}},
                      type.dtype, type.shape));
    call_.component.outputs[output_index] = {OutputKind::kBufferMutation, "", buffer_name_};
    return {};
  }

  DecoderCall& call_;
  bool use_custom_op_;
  ValueId has_begun_;  // [1], whether there are tokens before the call
  std::string buffer_name_;
  std::map<uint32_t, CachedKeys> keys_;
};

}  // namespace

Result<std::vector<CacheState>> read_cache_states(const Component& component) {
  std::vector<CacheState> states;
  auto attribute = component.attributes.find("capture.cache");
  if (attribute == component.attributes.end()) return states;
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse(attribute->second, "capture.cache"));
  JsonView list = document.root().find("states");
  if (!list.is_array()) return fail(ErrorCode::kCorruptFile, "capture.cache of the capture has no list of states");
  for (JsonView item : list.items()) {
    auto input = item.find("input").as_string(), output = item.find("output").as_string();
    if (!input) return fail(ErrorCode::kCorruptFile, "a state of capture.cache has no input");
    if (!output) continue;  // it stays as it is
    states.push_back({std::string(*input), std::string(*output)});
  }
  return states;
}

Result<std::map<uint32_t, CachedKeys>> keep_states(DecoderCall& call, const std::vector<CacheState>& states,
                                                   bool use_custom_op) {
  StateKeeper keeper(call, use_custom_op);
  for (const CacheState& state : states) ARGOSY_TRY_STATUS(keeper.keep(state));
  return keeper.take();
}

Result<ValueId> keep_row(DecoderCall& call, const std::string& name, ValueId added) {
  return StateKeeper(call, false).keep_row(name, added);
}

}  // namespace argosy::executorch
