#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// The weights of one direction of one layer.
struct Cell {
  ValueId input, hidden;
  std::optional<ValueId> input_bias, hidden_bias;
};

ValueId linear(AtenBuilder& f, ValueId x, ValueId weight, std::optional<ValueId> bias) {
  Sizes shape = f.shape(x);
  shape.back() = f.size(weight, 0);
  return f.node(aten::kLinear, {{"input", x}, {"weight", weight}, {"bias", bias ? Argument(*bias) : Argument(None{})}},
                f.dtype(x), std::move(shape));
}

/// One step: gates of the input are computed for all steps at once, those of the state here.
void step_lstm(AtenBuilder& f, ValueId gates, const Cell& cell, std::vector<ValueId>& states) {
  gates = f.add(gates, linear(f, states[0], cell.hidden, cell.hidden_bias));
  SymExpr width = f.size(states[0], -1);
  int64_t size = width.as_integer().value_or(0);
  auto gate = [&](int64_t i) { return f.slice(gates, -1, i * size, width); };
  ValueId kept = f.mul(f.sigmoid(gate(1)), states[1]);
  ValueId opened = f.sigmoid(gate(0));
  states[1] = f.add(kept, f.mul(opened, f.tanh(gate(2))));
  ValueId shown = f.sigmoid(gate(3));
  states[0] = f.mul(shown, f.tanh(states[1]));
}

void step_gru(AtenBuilder& f, ValueId gates, const Cell& cell, std::vector<ValueId>& states) {
  ValueId own = linear(f, states[0], cell.hidden, cell.hidden_bias);
  SymExpr width = f.size(states[0], -1);
  int64_t size = width.as_integer().value_or(0);
  auto part = [&](ValueId x, int64_t i) { return f.slice(x, -1, i * size, width); };
  auto gate = [&](int64_t i) {
    ValueId given = part(gates, i);
    return f.sigmoid(f.add(given, part(own, i)));
  };
  ValueId reset = gate(0), update = gate(1), given = part(gates, 2);
  ValueId fresh = f.tanh(f.add(given, f.mul(reset, part(own, 2))));
  states[0] = f.add(fresh, f.mul(update, f.sub(states[0], fresh)));
}

/// Written out step by step, where the number of steps is known.
bool unroll(AtenBuilder& f) {
  constexpr int64_t kMostSteps = 512;
  bool is_lstm = f.op() == "aten.lstm.input";
  ValueId input = f["input"];
  const auto* parameters = f.argument("params").get_if<ValueList>();
  std::optional<int64_t> layers = f.integer("num_layers");
  if (f.rank(input) != 3 || parameters == nullptr || !layers) return false;
  if (f.flag("batch_first")) input = f.transpose(input, 0, 1);
  std::optional<int64_t> steps = f.size(input, 0).as_integer();
  if (!steps) f.refuse("a recurrence over a number of steps that is not known", "export with a fixed length");
  if (*steps > kMostSteps) f.refuse("a recurrence over more than 512 steps");
  std::vector<ValueId> initial;
  if (is_lstm) {
    const auto* list = f.argument("hx").get_if<ValueList>();
    if (list == nullptr) return false;
    initial.assign(list->begin(), list->end());
  } else {
    initial = {f["hx"]};
  }
  const size_t directions = f.flag("bidirectional") ? 2 : 1, each = f.flag("has_biases") ? 4 : 2;
  if (parameters->size() != static_cast<size_t>(*layers) * directions * each) return false;  // projections
  std::vector<std::vector<ValueId>> finals(initial.size());
  for (int64_t layer = 0; layer < *layers; ++layer) {
    std::vector<ValueId> outputs;
    for (size_t direction = 0; direction < directions; ++direction) {
      size_t index = static_cast<size_t>(layer) * directions + direction;
      const ValueId* own = parameters->data() + index * each;
      Cell cell{own[0], own[1], std::nullopt, std::nullopt};
      if (each == 4) {
        cell.input_bias = own[2];
        cell.hidden_bias = own[3];
      }
      std::vector<ValueId> states;
      for (ValueId state : initial) states.push_back(f.select(state, 0, static_cast<int64_t>(index)));
      ValueId gates = linear(f, input, cell.input, cell.input_bias);
      std::vector<ValueId> rows(static_cast<size_t>(*steps));
      for (int64_t i = 0; i < *steps; ++i) {
        int64_t at = direction == 0 ? i : *steps - 1 - i;
        (is_lstm ? step_lstm : step_gru)(f, f.select(gates, 0, at), cell, states);
        rows[static_cast<size_t>(at)] = f.unsqueeze(states[0], 0);
      }
      outputs.push_back(f.cat(rows, 0));
      for (size_t i = 0; i < states.size(); ++i) finals[i].push_back(f.unsqueeze(states[i], 0));
    }
    input = f.cat(outputs, -1);
  }
  std::vector<ValueId> results = {f.flag("batch_first") ? f.transpose(input, 0, 1) : input};
  for (const std::vector<ValueId>& state : finals) results.push_back(f.cat(state, 0));
  return f.replace(results);
}

constexpr RewriteRule kRecurrentRules[] = {
    {.op = "aten.lstm.input", .name = "unroll-recurrence", .apply = write<unroll>},
    {.op = "aten.gru.input", .name = "unroll-recurrence", .apply = write<unroll>},
};

}  // namespace

std::span<const RewriteRule> recurrent() { return kRecurrentRules; }

}  // namespace argosy::decompose
