#include "passes/emitter.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace argosy {
namespace {

constexpr std::string_view kSymSize = "aten::sym_size.int(Tensor self, int dim) -> SymInt";

/// "aten.add.Tensor" -> "add": how values of such a node are called.
std::string name_of(const OpSchema& schema) {
  std::string name = schema.name.substr(schema.name.find('.') + 1);
  return name.substr(0, name.find('.'));
}

}  // namespace

Result<OpId> find_or_add(SchemaTable& schemas, std::string_view text) {
  std::string_view name = text.substr(0, text.find('('));
  if (auto known = schemas.find(op_name_of(name))) return *known;
  return schemas.add(text);
}

Result<ValueId> Emitter::operator()(std::string_view text, std::vector<Named> named, ValueType type) {
  ARGOSY_TRY(OpId op, find_or_add(context_.program.schemas, text));
  ARGOSY_TRY(std::vector<Argument> arguments, in_order(context_.program.schemas[op], std::move(named)));
  return create(op, std::move(arguments), std::move(type));
}

Result<std::vector<ValueId>> Emitter::several(std::string_view text, std::vector<Named> named,
                                              const std::vector<TensorType>& types) {
  ARGOSY_TRY(OpId op, find_or_add(context_.program.schemas, text));
  ARGOSY_TRY(std::vector<Argument> arguments, in_order(context_.program.schemas[op], std::move(named)));
  std::vector<NewValue> outputs;
  for (const TensorType& type : types) outputs.push_back({name_of(context_.program.schemas[op]), type});
  return graph()[context_.rewriter.create(op, std::move(arguments), std::move(outputs))].outputs;
}

Result<std::vector<Argument>> Emitter::in_order(const OpSchema& schema, std::vector<Named> named) {
  std::vector<Argument> arguments;
  size_t used = 0;
  for (const SchemaArgument& wanted : schema.arguments) {
    auto given = std::find_if(named.begin(), named.end(), [&](const Named& item) { return item.first == wanted.name; });
    if (given != named.end()) {
      arguments.push_back(std::move(given->second));
      ++used;
    } else if (wanted.default_value) {
      arguments.push_back(*wanted.default_value);
    } else {
      return fail(ErrorCode::kUnsupportedVersion, format("op {} has an argument {} here", schema.name, wanted.name),
                  "capture the model with a version of torch that this argosy knows");
    }
  }
  if (used != named.size()) {
    return fail(ErrorCode::kUnsupportedVersion, format("op {} lacks an argument here: {}", schema.name, schema.text),
                "capture the model with a version of torch that this argosy knows");
  }
  return arguments;
}

Result<ValueId> Emitter::positional(std::string_view text, std::vector<Argument> arguments, ValueType type) {
  ARGOSY_TRY(OpId op, find_or_add(context_.program.schemas, text));
  const OpSchema& schema = context_.program.schemas[op];
  if (schema.arguments.size() != arguments.size()) {
    return fail(ErrorCode::kUnsupportedVersion, format("op {} has other arguments here: {}", schema.name, schema.text),
                "capture the model with a version of torch that this argosy knows");
  }
  return create(op, std::move(arguments), std::move(type));
}

ValueId Emitter::create(OpId op, std::vector<Argument> arguments, ValueType type) {
  NodeId node = context_.rewriter.create(op, std::move(arguments),
                                         {NewValue{name_of(context_.program.schemas[op]), std::move(type)}});
  return graph()[node].outputs[0];
}

const TensorType& Emitter::type(ValueId tensor) const {
  const TensorType* type = graph()[tensor].tensor();
  ARGOSY_CHECK(type != nullptr, "a rule took a number for a tensor");
  return *type;
}

Result<IntItem> Emitter::size(ValueId tensor, int64_t dim) {
  SymExpr size = type(tensor).shape[static_cast<size_t>(dim)];
  if (auto number = size.as_integer()) return IntItem(*number);
  ARGOSY_TRY(ValueId value, (*this)(kSymSize, {{"self", tensor}, {"dim", dim}}, SymType{SymType::Kind::kInt, size}));
  return IntItem(value);
}

}  // namespace argosy
