#include "backends/executorch/generation/decoder_call.h"

#include "passes/aten_schemas.h"
#include "passes/match.h"

namespace argosy::executorch {
namespace {

constexpr std::string_view kItem = "aten::item(Tensor self) -> Scalar";
constexpr std::string_view kAdd = "_operator.add(Any a, Any b) -> Any";
constexpr std::string_view kSymSize = "aten::sym_size.int(Tensor self, int dim) -> SymInt";

}  // namespace

DecoderCall::DecoderCall(Program& the_program, Component& the_component, ValueId the_tokens, SymExpr the_sequence,
                         SymExpr the_total, int64_t the_largest)
    : program(the_program),
      component(the_component),
      rewriter(the_component.graphs.front()),
      context{the_program, the_component, rewriter, NodeId{}},
      emit(context),
      tokens(the_tokens),
      sequence(the_sequence),
      total(the_total),
      largest(the_largest) {}

Status DecoderCall::begin() {
  positions = rewriter.add_input({std::string(kPositions), TensorType{DType::kI64, {sequence}, {}}});
  ARGOSY_TRY(ValueId first, top(aten::kSelect, {{"self", positions}, {"dim", int64_t{0}}, {"index", int64_t{0}}},
                                TensorType{DType::kI64, {}, {}}));
  ARGOSY_TRY(start, top(kItem, {{"self", first}}, SymType{SymType::Kind::kInt, past()}));
  ARGOSY_TRY(length, top(kSymSize, {{"self", positions}, {"dim", int64_t{0}}}, SymType{SymType::Kind::kInt, sequence}));
  ARGOSY_TRY(end, top(kAdd, {{"a", start}, {"b", length}}, SymType{SymType::Kind::kInt, total}));
  return {};
}

Result<ValueId> DecoderCall::top(std::string_view schema, std::vector<Emitter::Named> arguments, ValueType type) {
  if (last_at_top_.is_valid()) {
    rewriter.insert_after(last_at_top_);
  } else if (graph().first().is_valid()) {
    rewriter.insert_before(graph().first());
  }
  ARGOSY_TRY(ValueId value, emit(schema, std::move(arguments), std::move(type)));
  last_at_top_ = graph()[value].producer;
  return value;
}

bool is_middle_swap(const Program& program, const Node& node) {
  return program.schemas[node.op].name == "aten.permute.default" && node.arguments.size() == 2 &&
         numbers(node.arguments[1]) == std::optional(std::vector<int64_t>{0, 2, 1, 3});
}

Result<ValueId> DecoderCall::swap_middle(ValueId tensor) {
  NodeId producer = graph()[tensor].producer;
  if (producer.is_valid() && is_middle_swap(program, graph()[producer]))
    return std::get<ValueId>(graph()[producer].arguments[0].variant());
  TensorType type{emit.type(tensor).dtype, emit.type(tensor).shape, {}};
  std::swap(type.shape[1], type.shape[2]);
  return emit(aten::kPermute, {{"self", tensor}, {"dims", to_list({0, 2, 1, 3})}}, std::move(type));
}

}  // namespace argosy::executorch
