#include "frontends/capture/interface.h"

#include <map>

#include "base/text.h"

namespace argosy {
namespace {

using DimsByName = std::map<std::string, SymExpr, std::less<>>;

Result<SymRange> read_range(const JsonField& range) {
  SymRange result;
  JsonField min = range.member("min");
  JsonField max = range.member("max");
  if (min.is_valid() && !min.view().is_null()) {
    ARGOSY_TRY(result.min, min.integer());
  }
  if (max.is_valid() && !max.view().is_null()) {
    ARGOSY_TRY(result.max, max.integer());
  }
  if (result.min > result.max) return range.error(format("empty range {} to {}", result.min, result.max));
  return result;
}

// One dim of an input: a number, a name, or null (nothing is known of it).
Status read_dim(const JsonField& dim, SymExpr size, Component& component, DimsByName& dims) {
  if (dim.view().is_null()) return {};
  SymContext& symbols = *component.symbols;
  if (std::optional<int64_t> number = dim.view().as_integer()) {
    if (symbols.prove_equal(size, symbols.integer(*number)) == false)
      return dim.error(format("the graph has {} here, not {}", symbols.to_text(size), *number));
    return {};
  }
  ARGOSY_TRY(std::string_view name, dim.string());
  if (name.empty()) return dim.error("empty name of a dim");
  auto [known, is_new] = dims.try_emplace(std::string(name), size);
  if (!is_new && !symbols.unify(known->second, size))
    return dim.error(
        format("dim {} is {} and {} at once", quoted(name), symbols.to_text(known->second), symbols.to_text(size)));
  if (size.kind() == SymKind::kSymbol) component.dim_names.emplace(size.symbol_name(), name);
  return {};
}

Status read_inputs(const JsonField& json, Component& component, DimsByName& dims) {
  JsonField inputs = json.member("inputs");
  ARGOSY_TRY_STATUS(inputs.require_array());
  std::map<std::string_view, const InputSpec*> by_name;
  for (const InputSpec& input : component.inputs) by_name.emplace(input.name, &input);
  int64_t index = 0;
  for (JsonView item : inputs.view().items()) {
    JsonField field = inputs.item(item, index++);
    JsonField name_field = field.member("name");
    ARGOSY_TRY(std::string_view name, name_field.string());
    auto found = by_name.find(name);
    if (found == by_name.end()) return name_field.error(format("the graph has no input {}", quoted(name)));
    if (!found->second->value.is_valid()) continue;
    const TensorType* type = component.entry()[found->second->value].tensor();
    if (type == nullptr) continue;
    JsonField dtype = field.member("dtype");
    ARGOSY_TRY(std::string_view dtype_text, dtype.string());
    if (dtype_text != to_text(type->dtype)) {
      return dtype.error(
          format("the graph has dtype {} for {}, not {}", to_text(type->dtype), quoted(name), quoted(dtype_text)));
    }
    JsonField sizes = field.member("dims");
    ARGOSY_TRY_STATUS(sizes.require_array());
    if (sizes.view().size() != type->shape.size())
      return sizes.error(format("the graph has {} dims here", type->shape.size()));
    size_t dim = 0;
    for (JsonView size : sizes.view().items()) {
      JsonField size_field = sizes.item(size, static_cast<int64_t>(dim));
      ARGOSY_TRY_STATUS(read_dim(size_field, type->shape[dim++], component, dims));
    }
  }
  return {};
}

Status read_ranges(const JsonField& json, Component& component, const DimsByName& dims) {
  JsonField ranges = json.member("dims");
  ARGOSY_TRY_STATUS(ranges.require_object());
  for (auto [name, value] : ranges.view().members()) {
    JsonField field = ranges.child(name, value);
    ARGOSY_TRY(SymRange range, read_range(field));
    auto found = dims.find(name);
    if (found == dims.end() || found->second.kind() != SymKind::kSymbol) continue;
    SymRange known = component.symbols->range(found->second);
    SymRange both{.min = std::max(known.min, range.min), .max = std::min(known.max, range.max)};
    if (both.min > both.max)
      return field.error(format("contradicts the graph, which has {} to {}", known.min, known.max));
    component.symbols->set_range(found->second, both);
  }
  return {};
}

Status read_outputs(const JsonField& json, Component& component) {
  JsonField outputs = json.member("outputs");
  ARGOSY_TRY_STATUS(outputs.require_array());
  std::vector<OutputSpec*> user_outputs;
  for (OutputSpec& output : component.outputs) {
    if (output.kind == OutputKind::kUser || output.kind == OutputKind::kLoss) user_outputs.push_back(&output);
  }
  if (outputs.view().size() != user_outputs.size()) {
    return outputs.error(format("the graph has {} outputs, this list {}", user_outputs.size(), outputs.view().size()));
  }
  int64_t index = 0;
  for (JsonView item : outputs.view().items()) {
    JsonField field = outputs.item(item, index);
    ARGOSY_TRY(std::string_view name, field.member("name").string());
    user_outputs[static_cast<size_t>(index++)]->name = name;
  }
  return {};
}

Status read_specialized(const JsonField& json, Component& component) {
  JsonField list = json.member("specialized");
  if (!list.is_valid()) return {};
  ARGOSY_TRY_STATUS(list.require_array());
  int64_t index = 0;
  for (JsonView item : list.view().items()) {
    JsonField field = list.item(item, index++);
    SpecializedDim dim;
    ARGOSY_TRY(std::string_view input, field.member("input").string());
    ARGOSY_TRY(int64_t number, field.member("dim").integer());
    ARGOSY_TRY(dim.value, field.member("value").integer());
    ARGOSY_TRY(std::string_view reason, field.member("reason").string());
    if (number < 0 || number >= 64) return field.error("no such dim");
    dim.input = input;
    dim.dim = static_cast<int>(number);
    dim.reason = reason;
    bool is_known = false;  // guards may have told already; the capture knows better why
    for (SpecializedDim& known : component.specialized) {
      if (known.input != dim.input || known.dim != dim.dim) continue;
      known.reason = dim.reason;
      is_known = true;
    }
    if (!is_known) component.specialized.push_back(std::move(dim));
  }
  return {};
}

}  // namespace

Status read_interface(const JsonField& json, Component& component) {
  DimsByName dims;
  ARGOSY_TRY_STATUS(read_inputs(json, component, dims));
  ARGOSY_TRY_STATUS(read_ranges(json, component, dims));
  ARGOSY_TRY_STATUS(read_outputs(json, component));
  return read_specialized(json, component);
}

}  // namespace argosy
