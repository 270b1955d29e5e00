#include "passes/decompose_complex.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/check.h"
#include "base/text.h"
#include "passes/aten_schemas.h"
#include "passes/match.h"

namespace argosy {
namespace {

constexpr std::string_view kCos = "aten::cos(Tensor self) -> Tensor";
constexpr std::string_view kSin = "aten::sin(Tensor self) -> Tensor";
constexpr std::string_view kExp = "aten::exp(Tensor self) -> Tensor";
constexpr std::string_view kNeg = "aten::neg(Tensor self) -> Tensor";
constexpr std::string_view kAtan2 = "aten::atan2(Tensor self, Tensor other) -> Tensor";

bool is_complex(const Value& value) {
  const TensorType* type = value.tensor();
  return type != nullptr && kind_of(type->dtype) == DTypeKind::kComplex;
}

DType part_dtype(DType dtype) {
  if (dtype == DType::kC128) return DType::kF64;
  return dtype == DType::kC32 ? DType::kF16 : DType::kF32;
}

/// Rewrites one graph. Each handler gets a node that has complex operands or results; complex values have their pairs
/// in `pairs_`, by the time their users come.
class ComplexRewriter {
 public:
  ComplexRewriter(Program& program, Component& component, Graph& graph)
      : program_(program), component_(component), graph_(graph), rewriter_(graph) {}

  Result<bool> run() {
    for (std::span<const ValueId> values : {graph_.inputs(), graph_.weights()}) {
      for (ValueId value : values) {
        if (is_complex(graph_[value])) return refuse(format("%{} holds complex numbers", graph_[value].name));
      }
    }
    std::vector<NodeId> rewritten;
    for (NodeId node : graph_.nodes()) {
      if (!concerns_complex(node)) continue;
      if (Status status = rewrite(node); !status) {
        return fail(at_node(std::move(status).error(), program_, graph_, node));
      }
      rewritten.push_back(node);
    }
    for (const Argument& output : graph_.outputs()) {
      const ValueId* value = output.get_if<ValueId>();
      if (value != nullptr && is_complex(graph_[*value])) {
        return refuse(format("the result %{} holds complex numbers", graph_[*value].name));
      }
    }
    // Users come after what they use.
    for (size_t i = rewritten.size(); i-- > 0;) rewriter_.erase(rewritten[i]);
    return rewriter_.has_changed();
  }

 private:
  struct Row {
    std::string_view op;
    Result<ValueId> (ComplexRewriter::*rewrite)(Match&);
  };

  static tl::unexpected<Error> refuse(std::string what) {
    return fail(ErrorCode::kUnsupportedFeature, std::move(what),
                "have the model's code pass real numbers (torch.view_as_real) in and out");
  }

  bool concerns_complex(NodeId id) const {
    const Node& node = graph_[id];
    bool found = std::ranges::any_of(node.outputs, [&](ValueId value) { return is_complex(graph_[value]); });
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId value, uint32_t) { found |= is_complex(graph_[value]); });
    }
    return found;
  }

  /// Handlers of several results record them by themselves and return an invalid id.
  Status rewrite(NodeId id) {
    const std::string& name = program_.schemas[graph_[id].op].name;
    const auto* row = std::ranges::find(kRows, name, &Row::op);
    if (row == std::end(kRows)) {
      return fail(ErrorCode::kUnsupportedOp, format("op {} of complex numbers is not taken apart", name),
                  "have the model's code compute with real numbers there");
    }
    rewriter_.insert_before(id);
    RuleContext context{program_, component_, rewriter_, id};
    Match match(context);
    node_ = id;
    ARGOSY_TRY(ValueId result, (this->*row->rewrite)(match));
    if (result.is_valid()) record(0, result);
    return {};
  }

  void record(size_t index, ValueId result) {
    ValueId output = graph_[node_].outputs[index];
    if (is_complex(graph_[output])) {
      pairs_[output] = result;
    } else {
      rewriter_.replace_uses(output, result);
    }
  }

  // ---- pieces ----

  ValueId pair(ValueId complex) const {
    auto found = pairs_.find(complex);
    ARGOSY_CHECK(found != pairs_.end(), format("%{} has no pair", graph_[complex].name));
    return found->second;
  }
  ValueId pair(const Match& match, std::string_view argument) const { return pair(match.tensor(argument)); }

  /// The type of the pair that stands for output `index`.
  TensorType pair_type(const Match& match, size_t index = 0) const {
    TensorType type = match.result(index);
    type.dtype = part_dtype(type.dtype);
    type.shape.push_back(match.emit.number(2));
    return type;
  }

  static TensorType part_type(const Match& match, ValueId pair) {
    TensorType type = match.emit.type(pair);
    type.strides.clear();
    type.shape.pop_back();
    return type;
  }

  static Result<ValueId> part(Match& match, ValueId pair, int64_t index) {
    TensorType type = part_type(match, pair);
    auto dim = static_cast<int64_t>(type.shape.size());
    return match.emit(aten::kSelect, {{"self", pair}, {"dim", dim}, {"index", index}}, type);
  }

  static Result<ValueId> join(Match& match, ValueId real, ValueId imaginary) {
    TensorType type = match.emit.type(real);
    type.strides.clear();
    auto dim = static_cast<int64_t>(type.shape.size());
    type.shape.push_back(match.emit.number(1));
    ValueList parts;
    for (ValueId value : {real, imaginary}) {
      ARGOSY_TRY(ValueId column, match.emit(aten::kUnsqueeze, {{"self", value}, {"dim", dim}}, type));
      parts.push_back(column);
    }
    type.shape.back() = match.emit.number(2);
    return match.emit(aten::kCat, {{"tensors", std::move(parts)}, {"dim", dim}}, type);
  }

  static Result<ValueId> apply(Match& match, std::string_view schema, ValueId self, const TensorType& type) {
    return match.emit(schema, {{"self", self}}, type);
  }
  static Result<ValueId> apply(Match& match, std::string_view schema, ValueId self, ValueId other,
                               const TensorType& type) {
    return match.emit(schema, {{"self", self}, {"other", other}}, type);
  }

  /// The node's own op on pairs, its other arguments as they are.
  Result<ValueId> same_op(Match& match, std::vector<Argument> arguments) {
    return match.emit.positional(match.schema().text, std::move(arguments), pair_type(match));
  }

  /// Arguments with pairs in the place of complex tensors.
  std::vector<Argument> paired_arguments(const Match& match) const {
    std::vector<Argument> arguments = match.arguments();
    for (Argument& argument : arguments) {
      for_each_value(argument, [&](ValueId& value, uint32_t) {
        if (is_complex(graph_[value])) value = pair(value);
      });
    }
    return arguments;
  }

  // ---- making and taking apart ----

  Result<ValueId> from_parts(Match& match) { return join(match, match.tensor("real"), match.tensor("imag")); }

  Result<ValueId> from_polar(Match& match) {
    TensorType type = match.result();
    type.dtype = part_dtype(type.dtype);
    ValueId radius = match.tensor("abs"), angle = match.tensor("angle");
    TensorType angle_type{type.dtype, match.emit.type(angle).shape, {}};
    ARGOSY_TRY(ValueId cosine, apply(match, kCos, angle, angle_type));
    ARGOSY_TRY(ValueId sine, apply(match, kSin, angle, angle_type));
    ARGOSY_TRY(ValueId real, apply(match, aten::kMulTensor, radius, cosine, type));
    ARGOSY_TRY(ValueId imaginary, apply(match, aten::kMulTensor, radius, sine, type));
    return join(match, real, imaginary);
  }

  Result<ValueId> as_complex(Match& match) { return match.tensor("self"); }
  Result<ValueId> as_pair(Match& match) { return pair(match, "self"); }
  Result<ValueId> real(Match& match) { return part(match, pair(match, "self"), 0); }
  Result<ValueId> imaginary(Match& match) { return part(match, pair(match, "self"), 1); }

  /// A cast between complex types, from real numbers, or to them.
  Result<ValueId> cast(Match& match) {
    ValueId self = match.tensor("self");
    const TensorType result = match.result();
    if (!is_complex(graph_[self])) {
      ARGOSY_TRY(ValueId real, emit_cast(match.emit, self, part_dtype(result.dtype)));
      TensorType type = match.emit.type(real);
      type.strides.clear();
      ARGOSY_TRY(IntList sizes, sizes_of(match.emit, real));
      ARGOSY_TRY(ValueId zero,
                 match.emit(aten::kFull,
                            {{"size", std::move(sizes)}, {"fill_value", int64_t{0}}, {"dtype", type.dtype}}, type));
      return join(match, real, zero);
    }
    if (kind_of(result.dtype) == DTypeKind::kComplex)
      return emit_cast(match.emit, pair(self), part_dtype(result.dtype));
    ARGOSY_TRY(ValueId real, part(match, pair(self), 0));
    return emit_cast(match.emit, real, result.dtype);
  }

  // ---- arithmetic ----

  Result<ValueId> elementwise(Match& match) { return same_op(match, paired_arguments(match)); }

  Result<ValueId> conjugate(Match& match) {
    ValueId self = pair(match, "self");
    ARGOSY_TRY(ValueId real, part(match, self, 0));
    ARGOSY_TRY(ValueId imaginary, part(match, self, 1));
    ARGOSY_TRY(imaginary, apply(match, kNeg, imaginary, part_type(match, self)));
    return join(match, real, imaginary);
  }

  struct Parts {
    ValueId real, imaginary;
  };
  Result<Parts> parts(Match& match, std::string_view argument) {
    ValueId value = pair(match, argument);
    ARGOSY_TRY(ValueId real, part(match, value, 0));
    ARGOSY_TRY(ValueId imaginary, part(match, value, 1));
    return Parts{real, imaginary};
  }

  /// (a + bi) (c + di), or with the conjugate of the second.
  Result<Parts> product(Match& match, Parts left, Parts right, bool is_conjugate, const TensorType& type) {
    ARGOSY_TRY(ValueId ac, apply(match, aten::kMulTensor, left.real, right.real, type));
    ARGOSY_TRY(ValueId bd, apply(match, aten::kMulTensor, left.imaginary, right.imaginary, type));
    ARGOSY_TRY(ValueId ad, apply(match, aten::kMulTensor, left.real, right.imaginary, type));
    ARGOSY_TRY(ValueId bc, apply(match, aten::kMulTensor, left.imaginary, right.real, type));
    ARGOSY_TRY(ValueId real, apply(match, is_conjugate ? aten::kAddTensor : aten::kSubTensor, ac, bd, type));
    Parts result{real, {}};
    if (is_conjugate) {
      ARGOSY_TRY(result.imaginary, apply(match, aten::kSubTensor, bc, ad, type));
    } else {
      ARGOSY_TRY(result.imaginary, apply(match, aten::kAddTensor, ad, bc, type));
    }
    return result;
  }

  TensorType result_part(const Match& match) const {
    TensorType type = match.result();
    type.dtype = part_dtype(type.dtype);
    return type;
  }

  Result<ValueId> multiply(Match& match) {
    ARGOSY_TRY(Parts left, parts(match, "self"));
    ARGOSY_TRY(Parts right, parts(match, "other"));
    ARGOSY_TRY(Parts result, product(match, left, right, false, result_part(match)));
    return join(match, result.real, result.imaginary);
  }

  Result<ValueId> divide(Match& match) {
    ARGOSY_TRY(Parts left, parts(match, "self"));
    ARGOSY_TRY(Parts right, parts(match, "other"));
    const TensorType type = result_part(match);
    ARGOSY_TRY(Parts result, product(match, left, right, true, type));
    ARGOSY_TRY(ValueId square, square_of_absolute(match, right));
    ARGOSY_TRY(ValueId real, apply(match, aten::kDivTensor, result.real, square, type));
    ARGOSY_TRY(ValueId imaginary, apply(match, aten::kDivTensor, result.imaginary, square, type));
    return join(match, real, imaginary);
  }

  Result<ValueId> square_of_absolute(Match& match, Parts value) {
    TensorType type = match.emit.type(value.real);
    type.strides.clear();
    ARGOSY_TRY(ValueId real, apply(match, aten::kMulTensor, value.real, value.real, type));
    ARGOSY_TRY(ValueId imaginary, apply(match, aten::kMulTensor, value.imaginary, value.imaginary, type));
    return apply(match, aten::kAddTensor, real, imaginary, type);
  }

  Result<ValueId> absolute(Match& match) {
    ARGOSY_TRY(Parts value, parts(match, "self"));
    ARGOSY_TRY(ValueId square, square_of_absolute(match, value));
    return apply(match, aten::kSqrt, square, match.result());
  }

  Result<ValueId> angle(Match& match) {
    ARGOSY_TRY(Parts value, parts(match, "self"));
    return apply(match, kAtan2, value.imaginary, value.real, match.result());
  }

  Result<ValueId> exponential(Match& match) {
    ARGOSY_TRY(Parts value, parts(match, "self"));
    const TensorType type = result_part(match);
    ARGOSY_TRY(ValueId radius, apply(match, kExp, value.real, type));
    ARGOSY_TRY(ValueId cosine, apply(match, kCos, value.imaginary, type));
    ARGOSY_TRY(ValueId sine, apply(match, kSin, value.imaginary, type));
    ARGOSY_TRY(ValueId real, apply(match, aten::kMulTensor, radius, cosine, type));
    ARGOSY_TRY(ValueId imaginary, apply(match, aten::kMulTensor, radius, sine, type));
    return join(match, real, imaginary);
  }

  /// By a number: real ones scale both parts.
  Result<ValueId> scale(Match& match) {
    if (match["other"].is<std::complex<double>>()) return refuse("a product with a complex number");
    return elementwise(match);
  }

  // ---- shapes: the last dim stays last ----

  /// Adds what the last dim needs to a list of sizes, repeats or dims.
  Result<ValueId> with_list(Match& match, std::string_view argument, int64_t last) {
    std::vector<Argument> arguments = paired_arguments(match);
    uint32_t index = match.schema().find_argument(argument).value();
    auto* list = arguments[index].get_if<IntList>();
    ARGOSY_CHECK(list != nullptr, format("{} of {} is no list", argument, match.schema().name));
    list->emplace_back(last);
    return same_op(match, std::move(arguments));
  }

  Result<ValueId> reshape(Match& match) { return with_list(match, "shape", 2); }
  Result<ValueId> expand(Match& match) { return with_list(match, "size", 2); }
  Result<ValueId> repeat(Match& match) { return with_list(match, "repeats", 1); }
  Result<ValueId> permute(Match& match) {
    return with_list(match, "dims", static_cast<int64_t>(match.result().shape.size()));
  }

  /// Counts dims from the front, as one more follows behind. `added`: how many dims the result has more.
  Result<ValueId> with_dim(Match& match, size_t added) {
    std::vector<Argument> arguments = with_front_dims(match, added);
    return same_op(match, std::move(arguments));
  }

  std::vector<Argument> with_front_dims(Match& match, size_t added) const {
    std::vector<Argument> arguments = paired_arguments(match);
    uint32_t index = match.schema().find_argument("dim").value();
    size_t rank = first_rank(match) + added;
    auto wrap = [&](int64_t dim) { return static_cast<int64_t>(wrap_dim(dim, rank).value_or(0)); };
    if (auto* dim = arguments[index].get_if<int64_t>()) *dim = wrap(*dim);
    if (auto* dims = arguments[index].get_if<IntList>()) {
      for (IntItem& item : *dims) {
        if (auto* dim = std::get_if<int64_t>(&item)) *dim = wrap(*dim);
      }
    }
    return arguments;
  }

  /// The number of dims of the first complex operand.
  size_t first_rank(const Match& match) const {
    size_t rank = 0;
    bool is_found = false;
    for (const Argument& argument : match.arguments()) {
      for_each_value(argument, [&](ValueId value, uint32_t) {
        if (is_found || !is_complex(graph_[value])) return;
        rank = graph_[value].tensor()->shape.size();
        is_found = true;
      });
    }
    return rank;
  }

  Result<ValueId> along_dim(Match& match) { return with_dim(match, 0); }
  Result<ValueId> unsqueeze(Match& match) { return with_dim(match, 1); }

  /// Sums and means; over all dims if none are named.
  Result<ValueId> reduce(Match& match) {
    std::vector<Argument> arguments = with_front_dims(match, 0);
    uint32_t index = match.schema().find_argument("dim").value();
    auto* dims = arguments[index].get_if<IntList>();
    if (dims == nullptr || dims->empty()) {
      IntList all;
      for (size_t i = 0; i < first_rank(match); ++i) all.emplace_back(static_cast<int64_t>(i));
      arguments[index] = std::move(all);
    }
    if (!match["dtype"].is<None>()) return refuse("a sum in another dtype");
    return same_op(match, std::move(arguments));
  }

  Result<ValueId> size(Match& match) {
    auto dim = wrap_dim(match.integer("dim").value_or(0), first_rank(match)).value_or(0);
    return match.emit.positional(match.schema().text,
                                 {Argument(pair(match, "self")), Argument(static_cast<int64_t>(dim))},
                                 match.emit.graph()[graph_[node_].outputs[0]].type);
  }

  Result<ValueId> split(Match& match) {
    std::vector<Argument> arguments = with_front_dims(match, 0);
    std::vector<TensorType> types;
    for (size_t i = 0; i < match.output_count(); ++i) types.push_back(pair_type(match, i));
    ARGOSY_TRY(
        std::vector<ValueId> made,
        match.emit.several(match.schema().text,
                           {{"self", arguments[0]}, {"split_sizes", arguments[1]}, {"dim", arguments[2]}}, types));
    for (size_t i = 0; i < made.size(); ++i) record(i, made[i]);
    return ValueId{};
  }

  Result<ValueId> choose(Match& match) {
    std::vector<Argument> arguments = paired_arguments(match);
    ValueId condition = match.tensor("condition");
    TensorType type = match.emit.type(condition);
    type.strides.clear();
    auto dim = static_cast<int64_t>(type.shape.size());
    type.shape.push_back(match.emit.number(1));
    ARGOSY_TRY(arguments[0], match.emit(aten::kUnsqueeze, {{"self", condition}, {"dim", dim}}, type));
    return same_op(match, std::move(arguments));
  }

  static const std::array<Row, 37> kRows;

  Program& program_;
  Component& component_;
  Graph& graph_;
  Rewriter rewriter_;
  NodeId node_;                                 // the one that is rewritten
  std::unordered_map<ValueId, ValueId> pairs_;  // by complex value
};

// In alphabetical order.
const std::array<ComplexRewriter::Row, 37> ComplexRewriter::kRows = {{
    {"aten._conj.default", &ComplexRewriter::conjugate},
    {"aten.abs.default", &ComplexRewriter::absolute},
    {"aten.add.Tensor", &ComplexRewriter::elementwise},
    {"aten.angle.default", &ComplexRewriter::angle},
    {"aten.cat.default", &ComplexRewriter::along_dim},
    {"aten.complex.default", &ComplexRewriter::from_parts},
    {"aten.conj.default", &ComplexRewriter::conjugate},
    {"aten.conj_physical.default", &ComplexRewriter::conjugate},
    {"aten.div.Scalar", &ComplexRewriter::scale},
    {"aten.div.Tensor", &ComplexRewriter::divide},
    {"aten.exp.default", &ComplexRewriter::exponential},
    {"aten.expand.default", &ComplexRewriter::expand},
    {"aten.imag.default", &ComplexRewriter::imaginary},
    {"aten.index.Tensor", &ComplexRewriter::elementwise},
    {"aten.index_select.default", &ComplexRewriter::along_dim},
    {"aten.mean.dim", &ComplexRewriter::reduce},
    {"aten.mul.Scalar", &ComplexRewriter::scale},
    {"aten.mul.Tensor", &ComplexRewriter::multiply},
    {"aten.neg.default", &ComplexRewriter::elementwise},
    {"aten.permute.default", &ComplexRewriter::permute},
    {"aten.polar.default", &ComplexRewriter::from_polar},
    {"aten.real.default", &ComplexRewriter::real},
    {"aten.repeat.default", &ComplexRewriter::repeat},
    {"aten.reshape.default", &ComplexRewriter::reshape},
    {"aten.resolve_conj.default", &ComplexRewriter::as_pair},
    {"aten.select.int", &ComplexRewriter::along_dim},
    {"aten.slice.Tensor", &ComplexRewriter::along_dim},
    {"aten.split_with_sizes.default", &ComplexRewriter::split},
    {"aten.squeeze.dims", &ComplexRewriter::along_dim},
    {"aten.sub.Tensor", &ComplexRewriter::elementwise},
    {"aten.sum.dim_IntList", &ComplexRewriter::reduce},
    {"aten.sym_size.int", &ComplexRewriter::size},
    {"aten.to.dtype", &ComplexRewriter::cast},
    {"aten.unsqueeze.default", &ComplexRewriter::unsqueeze},
    {"aten.view_as_complex.default", &ComplexRewriter::as_complex},
    {"aten.view_as_real.default", &ComplexRewriter::as_pair},
    {"aten.where.self", &ComplexRewriter::choose},
}};

}  // namespace

Pass decompose_complex() {
  return {"decompose-complex", [](Program& program, PassContext&) -> Result<bool> {
            bool has_changed = false;
            for (Component& component : program.components) {
              for (Graph& graph : component.graphs) {
                ARGOSY_TRY(bool has_graph_changed, ComplexRewriter(program, component, graph).run());
                has_changed |= has_graph_changed;
              }
            }
            return has_changed;
          }};
}

}  // namespace argosy
