#include "passes/decompose_complex.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/check.h"
#include "base/text.h"
#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"

namespace argosy {
namespace {

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
        if (is_complex(graph_[value])) return fail(refusal(format("%{} holds complex numbers", graph_[value].name)));
      }
    }
    std::vector<NodeId> rewritten;
    for (NodeId node : graph_.nodes()) {
      if (!concerns_complex(node)) continue;
      if (Status status = or_refused([&] { return rewrite(node); }); !status) {
        return fail(at_node(std::move(status).error(), program_, graph_, node));
      }
      rewritten.push_back(node);
    }
    for (const Argument& output : graph_.outputs()) {
      const ValueId* value = output.get_if<ValueId>();
      if (value != nullptr && is_complex(graph_[*value])) {
        return fail(refusal(format("the result %{} holds complex numbers", graph_[*value].name)));
      }
    }
    // Users come after what they use.
    for (size_t i = rewritten.size(); i-- > 0;) rewriter_.erase(rewritten[i]);
    return rewriter_.has_changed();
  }

 private:
  struct Row {
    std::string_view op;
    ValueId (ComplexRewriter::*rewrite)(AtenBuilder&);
  };

  static Error refusal(std::string what) {
    return {ErrorCode::kUnsupportedFeature, std::move(what),
            "have the model's code pass real numbers (torch.view_as_real) in and out"};
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
    AtenBuilder f(context);
    node_ = id;
    ValueId result = (this->*row->rewrite)(f);
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
  ValueId pair(const AtenBuilder& f, std::string_view argument) const { return pair(f[argument]); }

  /// The type of the pair that stands for output `index`.
  static TensorType pair_type(const AtenBuilder& f, size_t index = 0) {
    TensorType type = f.result(index);
    type.dtype = part_dtype(type.dtype);
    type.shape.push_back(f.integer(2));
    return type;
  }

  struct Parts {
    ValueId real, imaginary;
  };
  Parts parts(AtenBuilder& f, std::string_view argument) {
    ValueId value = pair(f, argument), real = f.select(value, -1, 0);
    return {real, f.select(value, -1, 1)};
  }

  static ValueId join(AtenBuilder& f, ValueId real, ValueId imaginary) {
    ValueId first = f.unsqueeze(real, -1);
    return f.cat({first, f.unsqueeze(imaginary, -1)}, -1);
  }

  /// The node's own op on pairs, its other arguments as they are.
  static ValueId same_op(AtenBuilder& f, std::vector<Argument> arguments) {
    return f.positional(f.schema().text, std::move(arguments), pair_type(f));
  }

  /// Arguments with pairs in the place of complex tensors.
  std::vector<Argument> paired_arguments(const AtenBuilder& f) const {
    std::vector<Argument> arguments = f.arguments();
    for (Argument& argument : arguments) {
      for_each_value(argument, [&](ValueId& value, uint32_t) {
        if (is_complex(graph_[value])) value = pair(value);
      });
    }
    return arguments;
  }

  // ---- making and taking apart ----

  ValueId from_parts(AtenBuilder& f) { return join(f, f["real"], f["imag"]); }
  ValueId from_polar(AtenBuilder& f) { return polar(f, f["abs"], f["angle"]); }

  static ValueId polar(AtenBuilder& f, ValueId radius, ValueId angle) {
    ValueId cosine = f.cos(angle), sine = f.sin(angle), real = f.mul(radius, cosine);
    return join(f, real, f.mul(radius, sine));
  }

  ValueId as_complex(AtenBuilder& f) { return f["self"]; }
  ValueId as_pair(AtenBuilder& f) { return pair(f, "self"); }
  ValueId real(AtenBuilder& f) { return f.select(pair(f, "self"), -1, 0); }
  ValueId imaginary(AtenBuilder& f) { return f.select(pair(f, "self"), -1, 1); }

  /// A cast between complex types, from real numbers, or to them.
  ValueId cast(AtenBuilder& f) {
    ValueId self = f["self"];
    const DType wanted = f.result().dtype;
    if (!is_complex(graph_[self])) {
      ValueId real = f.cast(self, part_dtype(wanted));
      return join(f, real, f.full(f.shape(real), int64_t{0}, f.dtype(real), {real}));
    }
    if (kind_of(wanted) == DTypeKind::kComplex) return f.cast(pair(self), part_dtype(wanted));
    return f.cast(real(f), wanted);
  }

  // ---- arithmetic ----

  ValueId elementwise(AtenBuilder& f) { return same_op(f, paired_arguments(f)); }

  ValueId conjugate(AtenBuilder& f) {
    Parts value = parts(f, "self");
    return join(f, value.real, f.neg(value.imaginary));
  }

  /// (a + bi) (c + di), or with the conjugate of the second.
  static Parts product(AtenBuilder& f, Parts left, Parts right, bool is_conjugate) {
    ValueId ac = f.mul(left.real, right.real), bd = f.mul(left.imaginary, right.imaginary);
    ValueId ad = f.mul(left.real, right.imaginary), bc = f.mul(left.imaginary, right.real);
    ValueId real = is_conjugate ? f.add(ac, bd) : f.sub(ac, bd);
    return {real, is_conjugate ? f.sub(bc, ad) : f.add(ad, bc)};
  }

  ValueId multiply(AtenBuilder& f) {
    Parts left = parts(f, "self"), right = parts(f, "other");
    Parts result = product(f, left, right, false);
    return join(f, result.real, result.imaginary);
  }

  ValueId divide(AtenBuilder& f) {
    Parts left = parts(f, "self"), right = parts(f, "other");
    Parts result = product(f, left, right, true);
    ValueId square = square_of_absolute(f, right), real = f.div(result.real, square);
    return join(f, real, f.div(result.imaginary, square));
  }

  static ValueId square_of_absolute(AtenBuilder& f, Parts value) {
    ValueId real = f.mul(value.real, value.real);
    return f.add(real, f.mul(value.imaginary, value.imaginary));
  }

  ValueId absolute(AtenBuilder& f) { return f.sqrt(square_of_absolute(f, parts(f, "self"))); }

  ValueId angle(AtenBuilder& f) {
    Parts value = parts(f, "self");
    return f.binary(aten::kAtan2, value.imaginary, value.real);
  }

  ValueId exponential(AtenBuilder& f) {
    Parts value = parts(f, "self");
    return polar(f, f.exp(value.real), value.imaginary);
  }

  /// By a number: real ones scale both parts.
  ValueId scale(AtenBuilder& f) {
    if (f.argument("other").is<std::complex<double>>()) throw Refused(refusal("a product with a complex number"));
    return elementwise(f);
  }

  // ---- shapes: the last dim stays last ----

  /// Adds what the last dim needs to a list of sizes, repeats or dims.
  ValueId with_list(AtenBuilder& f, std::string_view argument, int64_t last) {
    std::vector<Argument> arguments = paired_arguments(f);
    auto* list = arguments[f.schema().find_argument(argument).value()].get_if<IntList>();
    ARGOSY_CHECK(list != nullptr, format("{} of {} is no list", argument, f.op()));
    list->emplace_back(last);
    return same_op(f, std::move(arguments));
  }

  ValueId reshape(AtenBuilder& f) { return with_list(f, "shape", 2); }
  ValueId expand(AtenBuilder& f) { return with_list(f, "size", 2); }
  ValueId repeat(AtenBuilder& f) { return with_list(f, "repeats", 1); }
  ValueId permute(AtenBuilder& f) { return with_list(f, "dims", static_cast<int64_t>(f.result().shape.size())); }

  /// Counts dims from the front, as one more follows behind. `added`: how many dims the result has more.
  std::vector<Argument> with_front_dims(const AtenBuilder& f, size_t added) const {
    std::vector<Argument> arguments = paired_arguments(f);
    Argument& given = arguments[f.schema().find_argument("dim").value()];
    size_t rank = first_rank(f) + added;
    auto wrap = [&](int64_t dim) { return static_cast<int64_t>(wrap_dim(dim, rank).value_or(0)); };
    if (auto* dim = given.get_if<int64_t>()) *dim = wrap(*dim);
    if (auto* dims = given.get_if<IntList>()) {
      for (IntItem& item : *dims) {
        if (auto* dim = std::get_if<int64_t>(&item)) *dim = wrap(*dim);
      }
    }
    return arguments;
  }

  /// The number of dims of the first complex operand.
  size_t first_rank(const AtenBuilder& f) const {
    std::optional<size_t> rank;
    for (const Argument& argument : f.arguments()) {
      for_each_value(argument, [&](ValueId value, uint32_t) {
        if (!rank && is_complex(graph_[value])) rank = f.rank(value);
      });
    }
    return rank.value_or(0);
  }

  ValueId along_dim(AtenBuilder& f) { return same_op(f, with_front_dims(f, 0)); }
  ValueId unsqueeze(AtenBuilder& f) { return same_op(f, with_front_dims(f, 1)); }

  /// Sums and means; over all dims if none are named.
  ValueId reduce(AtenBuilder& f) {
    if (f.has("dtype")) throw Refused(refusal("a sum in another dtype"));
    std::vector<Argument> arguments = paired_arguments(f);
    arguments[f.schema().find_argument("dim").value()] = to_list(f.dims("dim", first_rank(f)));
    return same_op(f, std::move(arguments));
  }

  ValueId size(AtenBuilder& f) {
    auto dim = static_cast<int64_t>(f.dim("dim", first_rank(f)).value_or(0));
    return f.positional(f.schema().text, {Argument(pair(f, "self")), Argument(dim)}, f.result_type());
  }

  ValueId split(AtenBuilder& f) {
    std::vector<Argument> arguments = with_front_dims(f, 0);
    std::vector<TensorType> types;
    for (size_t i = 0; i < f.output_count(); ++i) types.push_back(pair_type(f, i));
    std::vector<ValueId> made =
        f.nodes(f.schema().text, {{"self", arguments[0]}, {"split_sizes", arguments[1]}, {"dim", arguments[2]}}, types);
    for (size_t i = 0; i < made.size(); ++i) record(i, made[i]);
    return {};
  }

  ValueId choose(AtenBuilder& f) {
    std::vector<Argument> arguments = paired_arguments(f);
    arguments[0] = f.unsqueeze(f["condition"], -1);
    return same_op(f, std::move(arguments));
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
