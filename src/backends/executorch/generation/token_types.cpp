#include "backends/executorch/generation/token_types.h"

#include "base/text.h"
#include "border/border.h"
#include "passes/aten_builder.h"

namespace argosy::executorch {

Result<MediaTokens> read_media_tokens(const Program& program, const Component& decoder, int kinds) {
  MediaTokens result{kinds, {}};
  const InputSpec* types = find_input(decoder, kTokenTypes);
  if (kinds == 0 || types == nullptr || !types->value.is_valid()) return result;
  for (const Use& use : decoder.entry()[types->value].uses) {
    std::string_view op;
    const int64_t* number = nullptr;
    if (use.node.is_valid()) {
      const Node& node = decoder.entry()[use.node];
      op = program.schemas[node.op].name;
      if (op == "aten.sym_size.int") continue;
      if (node.arguments.size() > 1) number = node.arguments[1].get_if<int64_t>();
    }
    bool is_test = op == "aten.eq.Scalar" && number != nullptr && *number != 0;
    if (!is_test || kinds != 1 || (result.type && *result.type != *number)) {
      return fail(
          ErrorCode::kUnsupportedFeature,
          format("the model's {} tells media from text by {}, which runners do not pass", decoder.name, kTokenTypes),
          "export it without a task; callers then pass everything that it is given");
    }
    result.type = *number;
  }
  return result;
}

Status add_type_column(Program& program, Component& component, int64_t type) {
  const ValueId* embeddings = component.entry().outputs()[0].get_if<ValueId>();
  const TensorType* found = embeddings == nullptr ? nullptr : component.entry()[*embeddings].tensor();
  if (found == nullptr || found->shape.size() != 3)
    return fail(ErrorCode::kUnsupportedFeature, format("component {} gives no embeddings", component.name));
  Rewriter rewriter(component.graphs.front());
  RuleContext context{program, component, rewriter, NodeId{}};
  rewriter.set_output(0, AtenBuilder(context).pad(*embeddings, {0, 1}, static_cast<double>(type)));
  return {};
}

ValueId take_type_column(DecoderCall& call) {
  TensorType wider{call.type(call.tokens).dtype, call.type(call.tokens).shape, {}};
  std::optional<int64_t> width = wider.shape.size() == 3 ? wider.shape[2].as_integer() : std::nullopt;
  if (!width) AtenBuilder::refuse(format("component {} is not given embeddings", call.component.name));
  const std::vector<Use> readers = call.graph()[call.tokens].uses;
  wider.shape[2] = call.integer(*width + 1);
  call.rewriter.set_type(call.tokens, wider);
  ValueId embeddings = call.top().slice(call.tokens, 2, 0, call.integer(*width));
  ValueId types = call.top().select(call.tokens, 2, *width);
  for (const Use& use : readers) {
    if (!use.node.is_valid()) continue;
    Argument argument = call.graph()[use.node].arguments[use.argument];
    for_each_value(argument, [&](ValueId& value, uint32_t) {
      if (value == call.tokens) value = embeddings;
    });
    call.rewriter.set_argument(use.node, use.argument, std::move(argument));
  }
  return call.top().cast(types, DType::kI64);
}

}  // namespace argosy::executorch
