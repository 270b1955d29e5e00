#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

// grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor
// _grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor
// Rows are sorted by expert, expert i's end at offs[i]. A loop over the experts that have rows, so that neither time
// nor memory is spent on the others; its pieces are collected in a sequence, which no step copies.
void emit_grouped_mm(const NodeTranslator& e, const Translation& row) {
  bool is_plain = row.op == "aten._grouped_mm.default";
  std::string_view rows_name = is_plain ? "self" : "input", weight_name = is_plain ? "mat2" : "weight";
  if (is_plain && (!e.has("offs") || e.has("bias"))) e.decline("a grouped product without offsets or with a bias");
  if (e.rank(rows_name) != 2 || e.rank(weight_name) != 3) e.decline("groups of other than rows");
  Builder& b = e.builder();
  Ref input = e.tensor(rows_name), weight = e.tensor(weight_name);
  Ref ends = e.cast(e.tensor("offs"), DType::kI64);
  Ref starts = e.concat({e.ints({0}), e.slice(ends, 0, e.ints({0}), e.ints({-1}))}, 0);
  Ref active = e.squeeze(e.node("NonZero", {e.node("Greater", {ends, starts})}), {0});
  Ref trips = e.without_dims(e.node("Shape", {active}));
  DType dtype = e.result().dtype;

  // Begins with a piece without rows, as there may be no expert with rows.
  std::vector<SymExpr> none = {e.number(0), e.result().shape.back()};
  Ref empty = b.fill(e.sizes(none), b.scalar(0.0, dtype));
  Ref pieces = e.node("SequenceConstruct", {empty});
  b[pieces].is_sequence = true;

  Ref step = b.add_value({"", DType::kI64, std::vector<Dim>{}});
  Ref goes_on = b.add_value({"", DType::kBool, std::vector<Dim>{}});
  Ref carried = b.add_value({"", dtype, std::nullopt, true});
  b.open_graph("experts", {step, goes_on, carried});
  Ref expert = e.node("Gather", {active, step}, {{"axis", int64_t{0}}});
  Ref at = e.unsqueeze(expert, {0});
  Ref start = e.node("Gather", {starts, at}, {{"axis", int64_t{0}}});
  Ref end = e.node("Gather", {ends, at}, {{"axis", int64_t{0}}});
  Ref own = e.node("Gather", {weight, expert}, {{"axis", int64_t{0}}});
  Ref product = e.node("MatMul", {e.slice(input, 0, start, end), own});
  Ref grown = e.node("SequenceInsert", {carried, product});
  b[grown].is_sequence = true;
  Ref still = e.node("Identity", {goes_on});
  uint32_t body = b.close_graph({still, grown});

  Ref all = e.node("Loop", {trips, {}, pieces}, {{"body", body}});
  b[all].is_sequence = true;
  b[all].dtype = dtype;
  // Rows behind the last expert's are zero.
  Ref last = e.slice(ends, 0, e.ints({-1}), e.ints({INT64_MAX}));
  Ref missing = e.concat({e.sub(e.size(e.shape(rows_name)[0]), last), e.size(e.result().shape.back())}, 0);
  all = e.node("SequenceInsert", {all, b.fill(missing, b.scalar(0.0, dtype))});
  b[all].is_sequence = true;
  Ref result = e.node("ConcatFromSequence", {all}, {{"axis", int64_t{0}}});
  b[result].dtype = dtype;
  e.yield(result);
}

// experts(Tensor input, Tensor router, Tensor first, Tensor? first_bias, Tensor second, Tensor? second_bias, int k,
//         float alpha, float beta, float limit) -> Tensor
void emit_experts(const NodeTranslator& e, const Translation&) {
  Refs inputs = {e.tensor("input"),      e.tensor("router"), e.tensor("first"),
                 e.tensor("first_bias"), e.tensor("second"), e.tensor("second_bias")};
  e.yield(e.node("com.microsoft.MoE", std::move(inputs), experts_attributes(e)));
}

constexpr Translation kExpertTranslations[] = {
    {"onnx.experts.default", emit_experts},
    {"transformers.grouped_mm_fallback.default",
     emit_grouped_mm,
     {},
     "a loop over experts that have rows; the decomposition multiplies all rows by all"},
    {"aten._grouped_mm.default",
     emit_grouped_mm,
     {},
     "a loop over experts that have rows; the decomposition multiplies all rows by all"},
};

}  // namespace

Attributes experts_attributes(const NodeTranslator& e) {
  Attributes attributes = {{"k", e.integer("k")},
                           {"activation_type", std::string("swiglu")},
                           {"swiglu_fusion", int64_t{1}},
                           {"normalize_routing_weights", int64_t{1}},
                           {"activation_alpha", static_cast<float>(e.real("alpha"))},
                           {"activation_beta", static_cast<float>(e.real("beta"))}};
  if (double limit = e.real("limit"); limit > 0) attributes.push_back({"swiglu_limit", static_cast<float>(limit)});
  return attributes;
}

std::span<const Translation> expert_translations() { return kExpertTranslations; }

}  // namespace argosy::onnx
