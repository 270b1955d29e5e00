#include "passes/aten_builder.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/text.h"
#include "passes/aten_schemas.h"

namespace argosy {

namespace {

/// "aten.add.Tensor" -> "add": how values of such a node are called.
std::string name_of(const OpSchema& schema) {
  std::string name = schema.name.substr(schema.name.find('.') + 1);
  return name.substr(0, name.find('.'));
}

Refused other_schema(std::string what) {
  return Refused(Error(ErrorCode::kUnsupportedVersion, std::move(what),
                       "capture the model with a version of torch that this argosy knows"));
}

}  // namespace

Result<OpId> find_or_add(SchemaTable& schemas, std::string_view text) {
  std::string_view name = text.substr(0, text.find('('));
  if (auto known = schemas.find(op_name_of(name))) return *known;
  return schemas.add(text);
}

std::optional<size_t> wrap_dim(int64_t dim, size_t rank) {
  auto count = static_cast<int64_t>(rank);
  if (dim < -count || dim >= count) return std::nullopt;
  return static_cast<size_t>(dim < 0 ? dim + count : dim);
}

std::optional<std::vector<int64_t>> numbers(const Argument& argument) {
  const auto* list = argument.get_if<IntList>();
  if (list == nullptr) return std::nullopt;
  std::vector<int64_t> result;
  for (const IntItem& item : *list) {
    const int64_t* number = std::get_if<int64_t>(&item);
    if (number == nullptr) return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

IntList to_list(const std::vector<int64_t>& numbers) { return {numbers.begin(), numbers.end()}; }

AtenBuilder::AtenBuilder(RuleContext& context, const RewriteRule* rule)
    : context_(context),
      rule_(rule),
      node_(context.node.is_valid() ? context.rewriter.graph()[context.node] : Node{}),
      schema_(context.node.is_valid() ? &context.program.schemas[node_.op] : nullptr),
      value_limit_(context.rewriter.graph().value_limit()) {}

void AtenBuilder::refuse(std::string why, std::string hint) {
  throw Refused(Error(ErrorCode::kUnsupportedFeature, std::move(why), std::move(hint)));
}

// ---- the node ----

const Argument& AtenBuilder::argument(std::string_view name) const {
  std::optional<uint32_t> index = schema_->find_argument(name);
  ARGOSY_CHECK(index && *index < node_.arguments.size(), format("op {} has no argument {}", op(), name));
  return node_.arguments[*index];
}

std::optional<int64_t> AtenBuilder::integer(std::string_view name) const {
  const int64_t* number = argument(name).get_if<int64_t>();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<size_t> AtenBuilder::dim(std::string_view name, size_t rank) const {
  std::optional<int64_t> number = integer(name);
  return number ? wrap_dim(*number, rank) : std::nullopt;
}

TensorType AtenBuilder::result(size_t index) const {
  TensorType type = this->type(node_.outputs[index]);
  type.strides.clear();
  return type;
}

bool AtenBuilder::replace(ValueId with) {
  if (output_count() == 1 && graph()[with].tensor() != nullptr) with = cast(with, result().dtype);
  return replace(std::vector<ValueId>{with});
}

bool AtenBuilder::replace(const std::vector<ValueId>& with) {
  std::vector<Value> replaced;
  for (ValueId output : node_.outputs) replaced.push_back(graph()[output]);
  context_.rewriter.replace(context_.node, with);
  for (size_t i = 0; i < with.size(); ++i) {
    if (with[i].index < value_limit_) continue;
    context_.rewriter.rename(with[i], replaced[i].name);
    const TensorType *made = graph()[with[i]].tensor(), *had = replaced[i].tensor();
    if (made == nullptr || had == nullptr || made->shape.size() != had->shape.size()) continue;
    context_.rewriter.set_type(with[i], TensorType{made->dtype, had->shape, made->strides});
  }
  return true;
}

bool AtenBuilder::become(std::string_view schema, std::vector<Named> arguments) {
  std::vector<ValueType> types;
  for (ValueId output : node_.outputs) {
    types.push_back(graph()[output].type);
    if (auto* tensor = std::get_if<TensorType>(&types.back())) tensor->strides.clear();
  }
  return replace(graph()[create(schema, std::move(arguments), std::move(types))].outputs);
}

bool AtenBuilder::erase() {
  context_.rewriter.erase(context_.node);
  return true;
}

bool AtenBuilder::flag(std::string_view name) const {
  if (!knows(name)) return false;
  const bool* value = argument(name).get_if<bool>();
  return value != nullptr && *value;
}

std::optional<double> AtenBuilder::number(std::string_view name) const {
  const Argument& given = argument(name);
  if (const double* real = given.get_if<double>()) return *real;
  if (const int64_t* whole = given.get_if<int64_t>()) return static_cast<double>(*whole);
  if (const bool* truth = given.get_if<bool>()) return *truth ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<std::vector<int64_t>> AtenBuilder::per_dim(std::string_view name, size_t count) const {
  std::optional<std::vector<int64_t>> list = numbers(argument(name));
  if (!list) {
    if (auto single = integer(name)) return std::vector<int64_t>(count, *single);
    return std::nullopt;
  }
  if (list->size() == 1 && count > 1) list->resize(count, (*list)[0]);
  if (list->size() != count) return std::nullopt;
  return list;
}

std::vector<int64_t> AtenBuilder::dims(std::string_view name, size_t rank) const {
  std::vector<int64_t> given;
  if (knows(name)) {
    if (auto single = integer(name)) given = {*single};
    if (auto list = numbers(argument(name))) given = *list;
  }
  if (given.empty() || rank == 0) {
    given.resize(rank);
    std::iota(given.begin(), given.end(), 0);
    return given;
  }
  for (int64_t& dim : given) {
    std::optional<size_t> index = wrap_dim(dim, rank);
    if (!index) refuse("a dim that the tensor lacks");
    dim = static_cast<int64_t>(*index);
  }
  return given;
}

// ---- tensors and sizes ----

const TensorType& AtenBuilder::type(ValueId tensor) const {
  const TensorType* type = graph()[tensor].tensor();
  ARGOSY_CHECK(type != nullptr, "a rule took a number for a tensor");
  return *type;
}

const Node* AtenBuilder::made_by(ValueId tensor, std::string_view op) const {
  NodeId producer = graph()[tensor].producer;
  if (!producer.is_valid()) return nullptr;
  const Node& node = graph()[producer];
  return context_.program.schemas[node.op].name == op ? &node : nullptr;
}

const Node* AtenBuilder::made_by(const Node* reader, size_t index, std::string_view op) const {
  const ValueId* tensor = reader == nullptr ? nullptr : reader->arguments[index].get_if<ValueId>();
  return tensor == nullptr ? nullptr : made_by(*tensor, op);
}

bool AtenBuilder::adds_as_is(const Node* sum) {
  if (sum == nullptr) return false;
  const auto* whole = sum->arguments[2].get_if<int64_t>();
  const auto* real = sum->arguments[2].get_if<double>();
  return (whole != nullptr && *whole == 1) || (real != nullptr && *real == 1);
}

ValueId AtenBuilder::size_node(ValueId tensor, size_t dim) {
  SymExpr size = shape(tensor)[dim];
  for (const auto& [known, number] : known_sizes_) {
    if (known == size) return number;
  }
  ValueId number = value(aten::kSymSizeInt, {{"self", tensor}, {"dim", static_cast<int64_t>(dim)}},
                         SymType{SymType::Kind::kInt, size});
  // A rule adds nodes in order; elsewhere the place where nodes are added may change.
  if (size.is_valid() && schema_ != nullptr) know_size(size, number);
  return number;
}

size_t AtenBuilder::at(ValueId tensor, int64_t dim) const {
  std::optional<size_t> index = wrap_dim(dim, rank(tensor));
  ARGOSY_CHECK(index.has_value(), "a formula asks for a dim that a tensor lacks");
  return *index;
}

Argument AtenBuilder::as_argument(const IntItem& item) {
  return std::visit([](auto value) { return Argument(value); }, item);
}

IntItem AtenBuilder::item(SymExpr size, const std::vector<ValueId>& from) {
  if (auto known = size.as_integer()) return *known;
  return computed(size, from);
}

IntItem AtenBuilder::item(ValueId tensor, int64_t dim) {
  size_t index = at(tensor, dim);
  if (auto known = shape(tensor)[index].as_integer()) return *known;
  return size_node(tensor, index);
}

IntList AtenBuilder::items(ValueId tensor) {
  IntList list;
  for (size_t i = 0; i < rank(tensor); ++i) list.push_back(item(tensor, static_cast<int64_t>(i)));
  return list;
}

IntItem AtenBuilder::computed(SymExpr size, const std::vector<ValueId>& from) {
  for (const auto& [known, number] : known_sizes_) {
    if (known == size) return number;
  }
  for (ValueId tensor : from) {
    const Sizes& own = shape(tensor);
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i] == size) return size_node(tensor, i);
    }
  }
  if (!size.is_valid()) refuse("a size that is not known");
  // The size of a dim plus or minus a number.
  for (ValueId tensor : from) {
    for (size_t i = 0; i < rank(tensor); ++i) {
      SymExpr own = shape(tensor)[i];
      std::optional<int64_t> more =
          own.is_valid() && !own.as_integer() ? symbols().sub(size, own).as_integer() : std::nullopt;
      if (!more) continue;
      ValueId base = size_node(tensor, i);
      return value("_operator.add(Any a, Any b) -> Any", {{"a", base}, {"b", *more}},
                   SymType{SymType::Kind::kInt, size});
    }
  }
  std::string_view schema;
  switch (size.kind()) {
    case SymKind::kAdd: schema = "_operator.add(Any a, Any b) -> Any"; break;
    case SymKind::kMul: schema = "_operator.mul(Any a, Any b) -> Any"; break;
    case SymKind::kFloorDiv: schema = "_operator.floordiv(Any a, Any b) -> Any"; break;
    case SymKind::kMod: schema = "_operator.mod(Any a, Any b) -> Any"; break;
    case SymKind::kMin: schema = "torch.sym_min(Any a, Any b) -> Any"; break;
    case SymKind::kMax: schema = "torch.sym_max(Any a, Any b) -> Any"; break;
    default: refuse(format("a size that no tensor at hand has: {}", symbols().to_text(size)));
  }
  const std::vector<SymExpr> operands(size.operands().begin(), size.operands().end());
  IntItem total = item(operands[0], from);
  SymExpr so_far = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    switch (size.kind()) {
      case SymKind::kAdd: so_far = symbols().add(so_far, operands[i]); break;
      case SymKind::kMul: so_far = symbols().mul(so_far, operands[i]); break;
      case SymKind::kMin: so_far = symbols().min(so_far, operands[i]); break;
      case SymKind::kMax: so_far = symbols().max(so_far, operands[i]); break;
      default: so_far = size; break;
    }
    Argument other = as_argument(item(operands[i], from));
    total = value(schema, {{"a", as_argument(total)}, {"b", std::move(other)}}, SymType{SymType::Kind::kInt, so_far});
  }
  return total;
}

IntList AtenBuilder::items(Sizes sizes, const std::vector<ValueId>& from) {
  IntList list;
  for (SymExpr size : sizes) list.push_back(item(size, from));
  return list;
}

Sizes AtenBuilder::broadcast(const Sizes& a, const Sizes& b) const {
  Sizes joined = a.size() >= b.size() ? a : b;
  const Sizes& other = a.size() >= b.size() ? b : a;
  for (size_t i = 0; i < other.size(); ++i) {
    SymExpr& size = joined[joined.size() - other.size() + i];
    if (size.as_integer() == 1 || (!size.as_integer() && other[i].as_integer() && other[i].as_integer() != 1)) {
      size = other[i];
    }
  }
  return joined;
}

Sizes AtenBuilder::reduced(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims) const {
  Sizes result;
  for (size_t i = 0; i < rank(x); ++i) {
    bool is_reduced = std::ranges::any_of(dims, [&](int64_t dim) { return at(x, dim) == i; });
    if (!is_reduced) result.push_back(shape(x)[i]);
    if (is_reduced && keeps_dims) result.push_back(one());
  }
  return result;
}

// ---- nodes ----

std::vector<Argument> AtenBuilder::in_order(const OpSchema& schema, std::vector<Named> named) const {
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
      throw other_schema(format("op {} has an argument {} here", schema.name, wanted.name));
    }
  }
  if (used != named.size()) {
    throw other_schema(format("op {} lacks an argument here: {}", schema.name, schema.text));
  }
  return arguments;
}

NodeId AtenBuilder::create(std::string_view text, std::vector<Named> named, std::vector<ValueType> types) {
  SchemaTable& schemas = context_.program.schemas;
  Result<OpId> op = find_or_add(schemas, text);
  if (!op) throw Refused(std::move(op).error());
  std::vector<NewValue> outputs;
  for (ValueType& type : types) outputs.push_back({name_of(schemas[*op]), std::move(type)});
  return context_.rewriter.create(*op, in_order(schemas[*op], std::move(named)), std::move(outputs));
}

ValueId AtenBuilder::value(std::string_view schema, std::vector<Named> arguments, ValueType type) {
  return graph()[create(schema, std::move(arguments), {std::move(type)})].outputs[0];
}

ValueId AtenBuilder::node(std::string_view schema, std::vector<Named> arguments, DType dtype, Sizes shape) {
  return value(schema, std::move(arguments), TensorType{dtype, std::move(shape), {}});
}

ValueId AtenBuilder::positional(std::string_view text, std::vector<Argument> arguments, ValueType type) {
  SchemaTable& schemas = context_.program.schemas;
  Result<OpId> op = find_or_add(schemas, text);
  if (!op) throw Refused(std::move(op).error());
  const OpSchema& schema = schemas[*op];
  if (schema.arguments.size() != arguments.size()) {
    throw other_schema(format("op {} has other arguments here: {}", schema.name, schema.text));
  }
  NodeId node = context_.rewriter.create(*op, std::move(arguments), {{name_of(schema), std::move(type)}});
  return graph()[node].outputs[0];
}

ValueId AtenBuilder::repeated(std::vector<Named> changed) {
  std::vector<Argument> arguments = node_.arguments;
  for (Named& item : changed) arguments[schema_->find_argument(item.first).value()] = std::move(item.second);
  return positional(schema_->text, std::move(arguments), result());
}

std::vector<ValueId> AtenBuilder::nodes(std::string_view schema, std::vector<Named> arguments,
                                        const std::vector<TensorType>& types) {
  return graph()[create(schema, std::move(arguments), {types.begin(), types.end()})].outputs;
}

}  // namespace argosy
