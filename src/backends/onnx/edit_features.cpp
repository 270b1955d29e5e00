#include "backends/onnx/edit_features.h"

#include "backends/onnx/edit_nodes.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

Result<std::vector<Ref>> find_all(const Model& model, std::string_view kind, const std::vector<std::string>& names) {
  std::vector<Ref> found;
  for (const std::string& name : names) {
    found.push_back(kind == "input" ? find_input(model, name) : find_output(model, name));
    if (!found.back().is_valid()) return fail(no_such_port(model, kind, name));
  }
  return found;
}

/// The last dim, if it is a number.
Result<int64_t> width_of(const Model& model, Ref value, size_t rank) {
  const auto& shape = model[value].shape;
  const int64_t* width = shape && shape->size() == rank ? std::get_if<int64_t>(&shape->back()) : nullptr;
  if (width == nullptr)
    return fail(ErrorCode::kInvalidInput, format("{} has no last dim of a fixed size", quoted(model[value].name)));
  return *width;
}

void take_output(Model& model, Ref output) {
  std::erase(model.graphs[0].outputs, output);
  model[output].name.clear();
}

void widen(Model& model, Ref value, int64_t width) {
  if (model[value].shape && !model[value].shape->empty()) model[value].shape->back() = width;
}

}  // namespace

Status join_outputs(Model& model, const std::vector<std::string>& outputs) {
  ARGOSY_TRY(std::vector<Ref> parts, find_all(model, "output", outputs));
  if (parts.empty()) return {};
  int64_t whole = 0;
  for (Ref part : parts) {
    ARGOSY_TRY(int64_t width, width_of(model, part, 2));
    whole += width;
  }
  Ref outer = split_output(model, parts[0]);
  widen(model, outer, whole);
  for (size_t i = 1; i < parts.size(); ++i) take_output(model, parts[i]);
  NodeList nodes(model);
  nodes.give("Concat", parts, outer, {{"axis", int64_t{1}}});
  nodes.append();
  return {};
}

Status spread_features(Model& model, const FeatureSpread& spread) {
  ARGOSY_TRY(std::vector<Ref> inputs, find_all(model, "input", {spread.features}));
  ARGOSY_TRY(std::vector<Ref> more_inputs, find_all(model, "input", spread.more_inputs));
  ARGOSY_TRY(std::vector<Ref> outputs, find_all(model, "output", {spread.embeddings, spread.mask}));
  ARGOSY_TRY(std::vector<Ref> more_outputs, find_all(model, "output", spread.more_outputs));
  ARGOSY_TRY(int64_t width, width_of(model, inputs[0], 2));
  Ref embeddings = outputs[0], mask = outputs[1];

  Ref outer = split_input(model, inputs[0]);
  widen(model, outer, width * static_cast<int64_t>(1 + more_inputs.size()));
  for (Ref input : more_inputs) inputs.push_back(take_input(model, input));
  NodeList front(model);
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto begin = static_cast<int64_t>(i) * width;
    front.give("Slice", {outer, front.ints({begin}), front.ints({begin + width}), front.ints({1})}, inputs[i]);
  }
  front.insert();

  Ref wide = split_output(model, embeddings);
  widen(model, wide, width * static_cast<int64_t>(1 + more_outputs.size()));
  take_output(model, mask);
  NodeList back(model);
  Ref has_features = back.cast(back.node("Reshape", {mask, back.ints({-1})}, DType::kBool), DType::kI64);
  Ref number = back.node("CumSum", {has_features, back.integer(0)});  // of the feature that a token has, from 1
  Ref shape = back.concat({back.node("Shape", {mask}), back.ints({width})});
  std::vector<Ref> columns = {embeddings};
  for (Ref features : more_outputs) {
    take_output(model, features);
    DType dtype = model[features].dtype.value_or(DType::kF32);
    // A row of zeros in front is for tokens without features, and for placeholders beyond the last of them.
    Ref rows = back.node("Pad", {features, back.ints({1, 0, 0, 0})}, dtype);
    Ref is_there = back.node("LessOrEqual", {number, back.size(features, 0)}, DType::kBool);
    Ref row = back.node("Mul", {back.node("Mul", {number, has_features}), back.cast(is_there, DType::kI64)});
    Ref picked = back.node("Gather", {rows, row}, dtype);
    columns.push_back(back.node("Reshape", {picked, shape}, dtype));
  }
  back.give("Concat", columns, wide, {{"axis", int64_t{2}}});
  back.append();
  return {};
}

Status take_spread_features(Model& model, std::string_view embeddings, std::string_view mask,
                            const std::vector<std::string>& features) {
  ARGOSY_TRY(std::vector<Ref> inputs, find_all(model, "input", {std::string(embeddings), std::string(mask)}));
  ARGOSY_TRY(std::vector<Ref> parts, find_all(model, "input", features));
  ARGOSY_TRY(int64_t width, width_of(model, inputs[0], 3));
  Ref outer = split_input(model, inputs[0]);
  widen(model, outer, width * static_cast<int64_t>(1 + parts.size()));
  take_input(model, inputs[1]);
  NodeList front(model);
  auto slice = [&](size_t i) {
    auto begin = static_cast<int64_t>(i) * width;
    return std::vector<Ref>{outer, front.ints({begin}), front.ints({begin + width}), front.ints({2})};
  };
  front.give("Slice", slice(0), inputs[0]);
  for (size_t i = 0; i < parts.size(); ++i) {
    Ref part = take_input(model, parts[i]);
    Ref all = front.node("Slice", slice(i + 1), model[part].dtype.value_or(DType::kF32));
    front.give("Reshape", {all, front.ints({-1, width})}, part);
  }
  Ref sizes = front.node("Shape", {outer}, {{"start", int64_t{0}}, {"end", int64_t{2}}});
  front.give("Expand", {front.cast(front.integer(1), DType::kBool), sizes}, inputs[1]);
  front.insert();
  return {};
}

}  // namespace argosy::onnx
