#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

/// What tells an LSTM from a GRU.
struct Cell {
  std::string_view op;
  Ints order;  // which of torch's gates is ONNX's first, second, …
};

/// Rows of a weight (or bias) [gates * hidden, ...] with the gates in ONNX's order.
Ref reordered(const NodeTranslator& e, Ref value, const Cell& cell) {
  Refs gates = e.builder().node("Split", {value}, cell.order.size(),
                                {{"axis", int64_t{0}}, {"num_outputs", static_cast<int64_t>(cell.order.size())}});
  Refs placed;
  for (int64_t gate : cell.order) placed.push_back(gates[static_cast<size_t>(gate)]);
  return e.concat(std::move(placed), 0);
}

/// The weights of one layer, all directions stacked.
Refs layer_weights(const NodeTranslator& e, const Refs& parameters, size_t first, size_t directions, bool has_biases,
                   const Cell& cell) {
  Refs input, hidden, bias;
  size_t each = has_biases ? 4 : 2;
  for (size_t direction = 0; direction < directions; ++direction) {
    size_t at = first + direction * each;
    input.push_back(e.unsqueeze(reordered(e, parameters[at], cell), {0}));
    hidden.push_back(e.unsqueeze(reordered(e, parameters[at + 1], cell), {0}));
    if (!has_biases) continue;
    Ref both = e.concat({reordered(e, parameters[at + 2], cell), reordered(e, parameters[at + 3], cell)}, 0);
    bias.push_back(e.unsqueeze(both, {0}));
  }
  return {e.concat(std::move(input), 0), e.concat(std::move(hidden), 0),
          has_biases ? e.concat(std::move(bias), 0) : Ref{}};
}

/// Layers one after the other. `states` are the initial ones, [layers * directions, batch, hidden] each.
void emit_cells(const NodeTranslator& e, const Cell& cell, const Refs& states) {
  if (e.rank("input") != 3) e.decline("a sequence without a batch");
  if (e.flag("train") && e.real("dropout") != 0) e.decline("dropout between layers", "export the model in eval() mode");
  bool has_biases = e.flag("has_biases"), is_batch_first = e.flag("batch_first");
  size_t directions = e.flag("bidirectional") ? 2 : 1;
  Refs parameters = e.tensors("params");
  // The second weight of a layer is [gates * hidden, hidden].
  auto hidden = e.type_of(e.tensor_ids("params")[1]).shape.back().as_integer().value_or(0);
  Ref value = is_batch_first ? e.transpose(e.tensor("input"), {1, 0, 2}) : e.tensor("input");
  std::vector<Refs> finals(states.size());
  for (int64_t layer = 0; layer < e.integer("num_layers"); ++layer) {
    auto first = static_cast<int64_t>(directions) * layer;
    size_t weights = static_cast<size_t>(first) * (has_biases ? 4 : 2);
    Refs own = layer_weights(e, parameters, weights, directions, has_biases, cell);
    Refs inputs = {value, own[0], own[1], own[2], Ref{}};
    for (Ref state : states) {
      inputs.push_back(e.slice(state, 0, e.ints({first}), e.ints({first + static_cast<int64_t>(directions)})));
    }
    Attributes attributes = {{"direction", std::string(directions == 2 ? "bidirectional" : "forward")},
                             {"hidden_size", hidden}};
    if (cell.op == "GRU") attributes.push_back({"linear_before_reset", int64_t{1}});
    Refs results = e.builder().node(cell.op, std::move(inputs), 1 + states.size(), std::move(attributes));
    // [time, directions, batch, hidden] to [time, batch, directions * hidden]
    value = e.node("Reshape", {e.transpose(results[0], {0, 2, 1, 3}), e.ints({0, 0, -1})});
    for (size_t i = 0; i < states.size(); ++i) finals[i].push_back(results[i + 1]);
  }
  Refs results = {is_batch_first ? e.transpose(value, {1, 0, 2}) : value};
  for (Refs& state : finals) results.push_back(e.concat(std::move(state), 0));
  e.yield(results);
}

// lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train,
//            bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)
void emit_lstm(const NodeTranslator& e, const Translation&) { emit_cells(e, {"LSTM", {0, 3, 1, 2}}, e.tensors("hx")); }

// gru.input(Tensor input, Tensor hx, Tensor[] params, …) -> (Tensor, Tensor)
void emit_gru(const NodeTranslator& e, const Translation&) { emit_cells(e, {"GRU", {1, 0, 2}}, {e.tensor("hx")}); }

constexpr Translation kRecurrent[] = {
    {"aten.lstm.input", emit_lstm, {}, "LSTM"},
    {"aten.gru.input", emit_gru, {}, "GRU"},
};

}  // namespace

std::span<const Translation> recurrent_translations() { return kRecurrent; }

}  // namespace argosy::onnx
