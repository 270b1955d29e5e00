#include <algorithm>

#include "base/text.h"
#include "border/edits.h"
#include "passes/substitute_symbols.h"

// Names, order and types of what callers pass, and states.
namespace argosy {

void apply(Border& border, const RenameInput& edit) {
  border.input(edit.from);
  if (edit.from == edit.to) return;
  border.check_free("input", edit.from, edit.to);
  std::ranges::find(border.component.inputs, edit.from, &InputSpec::name)->name = edit.to;
}

void apply(Border& border, const RenameOutput& edit) {
  uint32_t index = border.output(edit.from);
  if (edit.from == edit.to) return;
  border.check_free("output", edit.from, edit.to);
  border.component.outputs[index].name = edit.to;
}

void apply(Border& border, const DropOutput& edit) { border.drop_output(edit.name); }

void apply(Border& border, const DropInput& edit) {
  ValueId value = border.take_input(edit.name);
  const std::vector<Use> uses = border.graph()[value].uses;
  for (const Use& use : uses) {
    const Node* node = use.node.is_valid() ? &border.graph()[use.node] : nullptr;
    if (node == nullptr || border.program.schemas[node->op].name != "aten.sym_size.int")
      Border::refuse(format("the input {} cannot go: the graph reads it", quoted(edit.name)));
    ValueId size = node->outputs[0];
    if (!border.graph()[size].uses.empty()) {
      IntItem same = border.top().item(border.graph()[size].number()->expression, border.inputs());
      if (const int64_t* number = std::get_if<int64_t>(&same))
        replace_number(border.rewriter, size, *number);
      else
        border.rewriter.replace_uses(size, std::get<ValueId>(same));
    }
    border.rewriter.erase(use.node);
  }
  border.rewriter.erase_input(value);
}

void apply(Border& border, const RenameDim& edit) {
  auto& names = border.component.dim_names;
  auto is_called = [](std::string_view name) { return [name](const auto& dim) { return dim.second == name; }; };
  if (std::ranges::any_of(names, is_called(edit.to)))
    Border::refuse(format("the graph has a dim called {} already", quoted(edit.to)));
  for (auto& [symbol, name] : names) {
    if (name == edit.from) name = edit.to;
  }
}

void apply(Border& border, const OrderInputs& edit) {
  std::vector<InputSpec>& inputs = border.component.inputs;
  for (const std::string& name : edit.names) {
    border.input(name);
    auto found = std::ranges::find(inputs, name, &InputSpec::name);
    std::rotate(found, found + 1, inputs.end());
  }
}

void apply(Border& border, const CastInput& edit) {
  auto dtype = dtype_from_text(edit.dtype);
  if (!dtype) Border::refuse(format("there is no dtype {}", quoted(edit.dtype)));
  ValueId inner = border.input(edit.name);
  ValueId outer = border.retype_input(edit.name, *dtype, border.type(inner).shape);
  border.replace(inner, border.top().cast(outer, border.type(inner).dtype));
}

void apply(Border& border, const FillInput& edit) {
  ValueId input = border.take_input(edit.name), like = border.input(edit.like);
  const Sizes theirs = border.type(like).shape;
  Sizes shape = border.type(input).shape;
  auto is_known = [&](SymExpr size) { return size.as_integer() || std::ranges::count(theirs, size) > 0; };
  if (!std::ranges::all_of(shape, is_known)) shape = theirs;
  border.replace(input, border.top().full(std::move(shape), edit.value, border.type(input).dtype, {like}));
}

void apply(Border& border, const ComputeTokenTypes& edit) {
  ValueId types = border.take_input(edit.input), mask = border.input(edit.mask);
  const DType dtype = border.type(types).dtype;
  const Sizes shape = border.type(mask).shape;
  if (shape.size() != 2) Border::refuse(format("{} is not [batch, total]", quoted(edit.mask)));
  if (!border.has_input(edit.tokens))
    border.add_input(edit.tokens, DType::kI64, {shape[0], border.named_size("sequence")});
  ValueId tokens = border.input(edit.tokens);
  AtenBuilder& f = border.top();
  SymExpr past = f.symbols().sub(shape[1], f.size(tokens, 1));
  if (edit.media_token) {
    ValueId before = f.full({shape[0], past}, int64_t{0}, dtype, border.inputs());
    ValueId is_media = f.cast(f.compare("eq", tokens, *edit.media_token), dtype);
    border.replace(types, f.cat({before, is_media}, 1));
  } else {
    IntItem has_past = f.item(f.symbols().min(past, f.one()), border.inputs());
    border.replace(types, f.full(shape, AtenBuilder::as_argument(has_past), dtype, {mask}));
  }
}

void apply(Border& border, const AcceptEmptyState& edit) {
  ValueId inner = border.input(edit.input);
  const Sizes shape = border.type(inner).shape;
  if (static_cast<size_t>(edit.dim) >= shape.size())
    Border::refuse(format("{} has no dim {}", quoted(edit.input), edit.dim));
  // A tensor without elements can be given any shape without elements; all others keep theirs.
  Sizes any = shape;
  for (size_t i = 0; i < any.size(); ++i) {
    if (any[i].as_integer()) any[i] = border.new_size();
  }
  ValueId outer = border.retype_input(edit.input, border.type(inner).dtype, std::move(any));
  border.replace(inner, border.top().reshape(outer, shape));
}

void apply(Border& border, const WidenState& edit) {
  ValueId inner = border.input(edit.input), result = border.output_tensor(edit.output);
  Sizes wide = border.type(inner).shape;
  int64_t width = wide.empty() ? edit.size + 1 : Border::fixed(wide.back(), edit.input);
  if (width > edit.size || border.type(result).shape.size() != wide.size()) {
    Border::refuse(format("the state {} cannot be made {} wide at its last dim", quoted(edit.input), edit.size));
  }
  AtenBuilder& f = border.top();
  wide.back() = f.integer(edit.size);
  ValueId outer = border.retype_input(edit.input, border.type(inner).dtype, std::move(wide));
  border.replace(inner, f.slice(outer, -1, 0, f.integer(width)));
  uint32_t index = border.output(edit.output);
  border.rewriter.set_output(index, border.at_end().pad(border.output_tensor(edit.output), {0, edit.size - width}));
}

void apply(Border& border, const PostponeOutput& edit) {
  constexpr std::string_view kAfter = "argosy::after(Tensor self, Tensor other) -> Tensor";
  ValueId result = border.output_tensor(edit.output), last = border.output_tensor(edit.last);
  const TensorType& type = border.type(result);
  auto varies = [](SymExpr size) { return !size.as_integer(); };
  if (type.shape.empty() || border.type(last).shape.empty() || border.type(last).shape[0] != type.shape[0] ||
      std::ranges::any_of(type.shape.begin() + 1, type.shape.end(), varies)) {
    Border::refuse(format("the output {} cannot be postponed: more than one of its sizes varies", quoted(edit.output)));
  }
  AtenBuilder& f = border.at_end();
  border.rewriter.set_output(border.output(edit.output),
                             f.node(kAfter, {{"self", result}, {"other", last}}, type.dtype, type.shape));
}

}  // namespace argosy
