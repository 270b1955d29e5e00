#include <algorithm>
#include <set>

#include "base/text.h"
#include "border/edits.h"
#include "passes/aten_schemas.h"

// Features of pictures and sounds: how they are handed on, and how a text does without.
namespace argosy {
namespace {

/// The last dim of a tensor of that rank.
int64_t width_of(const Border& border, ValueId tensor, size_t rank, std::string_view name) {
  const Sizes& shape = border.type(tensor).shape;
  if (shape.size() != rank) Border::refuse(format("{} has {} dims and not {}", quoted(name), shape.size(), rank));
  return Border::fixed(shape.back(), name);
}

/// Makes an input's last dim `times` as wide for callers; returns the parts, the first of which replaces the input.
std::vector<ValueId> widen_input(Border& border, std::string_view name, size_t rank, size_t times) {
  ValueId inner = border.input(name);
  int64_t width = width_of(border, inner, rank, name);
  const DType dtype = border.type(inner).dtype;
  Sizes wide = border.type(inner).shape;
  AtenBuilder& f = border.top();
  wide.back() = f.integer(width * static_cast<int64_t>(times));
  ValueId outer = border.retype_input(name, dtype, std::move(wide));
  std::vector<ValueId> parts;
  for (size_t i = 0; i < times; ++i)
    parts.push_back(f.slice(outer, -1, static_cast<int64_t>(i) * width, f.integer(width)));
  border.replace(inner, parts[0]);
  return parts;
}

}  // namespace

void apply(Border& border, const GroupRows& edit) {
  ValueId inner = border.output_tensor(edit.output);
  int64_t width = width_of(border, inner, 2, edit.output);
  if (edit.rows <= 0) Border::refuse(format("the output {} has no rows of a fixed size", quoted(edit.output)));
  AtenBuilder& f = border.at_end();
  SymExpr rows = f.integer(edit.rows);
  ValueId grouped = f.reshape(inner, {f.symbols().floor_div(f.size(inner, 0), rows), rows, f.integer(width)});
  border.rewriter.set_output(border.output(edit.output), grouped);
}

void apply(Border& border, const AcceptGroupedRows& edit) {
  width_of(border, border.input(edit.input), 2, edit.input);
  border.component.attributes[std::string(kAnyRank)] = edit.input;
}

void apply(Border& border, const JoinOutputs& edit) {
  std::vector<ValueId> parts;
  for (const std::string& name : edit.outputs) {
    parts.push_back(border.output_tensor(name));
    width_of(border, parts.back(), 2, name);
  }
  if (parts.empty()) return;
  border.rewriter.set_output(border.output(edit.outputs[0]), border.at_end().cat(parts, 1));
  for (size_t i = 1; i < edit.outputs.size(); ++i) border.drop_output(edit.outputs[i]);
}

/// Embeddings of every token are followed by its further features, zeros where it has none.
void apply(Border& border, const SpreadFeatures& edit) {
  std::vector<ValueId> parts = widen_input(border, edit.features, 2, 1 + edit.more_inputs.size());
  for (size_t i = 0; i < edit.more_inputs.size(); ++i)
    border.replace(border.take_input(edit.more_inputs[i]), parts[i + 1]);

  ValueId embeddings = border.output_tensor(edit.embeddings), mask = border.output_tensor(edit.mask);
  AtenBuilder& f = border.at_end();
  const Sizes shape = f.shape(mask);
  if (shape.size() != 2 || f.rank(embeddings) != 3)
    Border::refuse(format("{} is not [batch, sequence]", quoted(edit.mask)));
  ValueId has_features = f.cast(f.reshape(mask, {f.symbols().mul(shape[0], shape[1])}), DType::kI64);
  // The number of the feature that a token has, counted from 1.
  ValueId number =
      f.node(aten::kCumsum, {{"self", has_features}, {"dim", int64_t{0}}}, DType::kI64, f.shape(has_features));
  std::vector<ValueId> columns = {embeddings};
  for (const std::string& name : edit.more_outputs) {
    ValueId features = border.output_tensor(name);
    int64_t width = width_of(border, features, 2, name);
    // A row of zeros in front is for tokens without features, and for placeholders beyond the last of them.
    ValueId rows = f.pad(features, {0, 0, 1, 0});
    ValueId is_there = f.compare("le", number, AtenBuilder::as_argument(f.item(features, 0)));
    ValueId row = f.mul(number, has_features);
    row = f.mul(row, f.cast(is_there, DType::kI64));
    columns.push_back(f.reshape(f.index_select(rows, 0, row), {shape[0], shape[1], f.integer(width)}, {mask}));
  }
  border.rewriter.set_output(border.output(edit.embeddings), f.cat(columns, 2));
  border.drop_output(edit.mask);
  for (const std::string& name : edit.more_outputs) border.drop_output(name);
}

/// Every token has features here; those that are zeros change nothing where they are added.
void apply(Border& border, const TakeSpreadFeatures& edit) {
  std::vector<ValueId> parts = widen_input(border, edit.embeddings, 3, 1 + edit.features.size());
  ValueId embeddings = border.input(edit.embeddings);
  AtenBuilder& f = border.top();
  SymExpr batch = f.size(embeddings, 0), sequence = f.size(embeddings, 1);
  border.replace(border.take_input(edit.mask), f.full({batch, sequence}, true, DType::kBool, {embeddings}));
  for (size_t i = 0; i < edit.features.size(); ++i) {
    ValueId rows = f.reshape(parts[i + 1], {f.symbols().mul(batch, sequence), f.size(parts[i + 1], 2)});
    border.replace(border.take_input(edit.features[i]), rows);
  }
}

namespace {

/// Finds what depends on features in a graph, and bypasses the nodes that put them in.
class Bypass {
 public:
  Bypass(Border& border, std::set<ValueId> features) : border_(border), dependent_(std::move(features)) {}

  void run() {
    for (NodeId id : border_.graph().nodes()) {
      const Node& node = border_.graph()[id];
      if (!reads(node)) continue;
      ValueId other = without_features(node);
      if (other.is_valid()) {
        border_.rewriter.replace(id, std::vector<ValueId>{other});
      } else {
        dependent_.insert(node.outputs.begin(), node.outputs.end());
      }
    }
  }

  bool depends(const Argument& argument) const {
    bool found = false;
    for_each_value(argument, [&](ValueId value, uint32_t) { found = found || dependent_.contains(value); });
    return found;
  }
  bool reads(const Node& node) const {
    return std::ranges::any_of(node.arguments, [&](const Argument& argument) { return depends(argument); });
  }

 private:
  /// What the node gives where it puts no feature; invalid if that is not known.
  ValueId without_features(const Node& node) const {
    std::string_view op = border_.program.schemas[node.op].name;
    auto is_scatter = [&](std::string_view name, size_t places) {
      return op == name && !depends(node.arguments[places]);
    };
    ValueId kept;
    if (op == "aten.where.self") {
      // The condition may depend on the number of features too: places beyond the last feature take none.
      bool first = depends(node.arguments[1]), second = depends(node.arguments[2]);
      if (first != second) kept = AtenBuilder::operand(node, first ? 2 : 1);
    } else if (is_scatter("aten.masked_scatter.default", 1) || is_scatter("aten.index_put.default", 1) ||
               is_scatter("aten.scatter.src", 2)) {
      kept = AtenBuilder::operand(node, 0);
    }
    // An operand that was spread over the result is not the result.
    if (!kept.is_valid() || dependent_.contains(kept) ||
        border_.type(kept).shape != border_.type(node.outputs[0]).shape)
      return {};
    return kept;
  }

  Border& border_;
  std::set<ValueId> dependent_;
};

}  // namespace

void apply(Border& border, const DropFeatures& edit) {
  std::set<ValueId> features;
  for (const std::string& name : edit.inputs) features.insert(border.take_input(name));
  Bypass bypass(border, features);
  bypass.run();
  for (size_t i = 0; i < border.component.outputs.size(); ++i) {
    if (!bypass.depends(border.graph().outputs()[i])) continue;
    AtenBuilder::refuse(
        format("{} is not text embeddings with features put in their places: it uses {} in a way that is not known",
               quoted(border.component.outputs[i].name), join(edit.inputs, ", ")));
  }
  // Nothing that is left depends on the inputs: the nodes that read them are dead.
  const Graph& graph = border.graph();
  for (NodeId id = graph.last(); id.is_valid();) {
    NodeId previous = graph.previous(id);
    if (bypass.reads(graph[id])) border.rewriter.erase(id);
    id = previous;
  }
  for (ValueId value : features) border.rewriter.erase_input(value);
}

}  // namespace argosy
