#include "passes/match.h"

#include "base/check.h"
#include "base/text.h"
#include "passes/aten_schemas.h"

namespace argosy {

Match::Match(RuleContext& context)
    : emit(context),
      context_(context),
      node_(context.rewriter.graph()[context.node]),
      schema_(context.program.schemas[node_.op]),
      value_limit_(context.rewriter.graph().value_limit()) {}

const Argument& Match::operator[](std::string_view argument) const {
  std::optional<uint32_t> index = schema_.find_argument(argument);
  ARGOSY_CHECK(index && *index < node_.arguments.size(), format("op {} has no argument {}", schema_.name, argument));
  return node_.arguments[*index];
}

std::optional<int64_t> Match::integer(std::string_view argument) const {
  const int64_t* number = (*this)[argument].get_if<int64_t>();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<size_t> Match::dim(std::string_view argument, size_t rank) const {
  std::optional<int64_t> number = integer(argument);
  return number ? wrap_dim(*number, rank) : std::nullopt;
}

TensorType Match::result(size_t index) const {
  TensorType type = emit.type(node_.outputs[index]);
  type.strides.clear();
  return type;
}

bool Match::replace(const std::vector<ValueId>& with) {
  std::vector<std::string> names;
  for (ValueId output : node_.outputs) names.push_back(emit.graph()[output].name);
  context_.rewriter.replace(context_.node, with);
  // What was emitted stands for the node, so it gets its name.
  for (size_t i = 0; i < with.size(); ++i) {
    if (with[i].index >= value_limit_) context_.rewriter.rename(with[i], names[i]);
  }
  return true;
}

bool Match::erase() {
  context_.rewriter.erase(context_.node);
  return true;
}

Result<IntList> sizes_of(Emitter& emit, ValueId tensor) {
  IntList sizes;
  for (size_t i = 0; i < emit.type(tensor).shape.size(); ++i) {
    ARGOSY_TRY(IntItem size, emit.size(tensor, static_cast<int64_t>(i)));
    sizes.push_back(size);
  }
  return sizes;
}

Result<ValueId> emit_cast(Emitter& emit, ValueId tensor, DType dtype) {
  if (emit.type(tensor).dtype == dtype) return tensor;
  TensorType type{dtype, emit.type(tensor).shape, {}};
  return emit(aten::kTo, {{"self", tensor}, {"dtype", dtype}}, std::move(type));
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

}  // namespace argosy
