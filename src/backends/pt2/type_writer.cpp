#include "backends/pt2/type_writer.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/text.h"
#include "io/pt2_format.h"

namespace argosy {
namespace {

constexpr int64_t kStridedLayout = 7;

std::string_view attribute(const Component& component, std::string_view name) {
  auto found = component.attributes.find(std::string(name));
  return found == component.attributes.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace

Pt2TypeWriter::Pt2TypeWriter(const Component& component)
    : symbols_(*component.symbols), device_(attribute(component, kPt2Device)) {
  if (device_.empty()) device_ = "cpu";
  std::string_view hints = attribute(component, kPt2Hints);
  while (!hints.empty()) {
    std::string_view hint = hints.substr(0, hints.find(' '));
    hints.remove_prefix(std::min(hints.size(), hint.size() + 1));
    size_t equals = hint.find('=');
    int64_t value = 0;
    if (equals == std::string_view::npos) continue;
    auto [end, error] = std::from_chars(hint.data() + equals + 1, hint.data() + hint.size(), value);
    if (error == std::errc() && end == hint.data() + hint.size()) hints_.emplace(hint.substr(0, equals), value);
  }
  std::string_view float_hints = attribute(component, kPt2FloatHints);
  if (float_hints.empty()) return;
  Result<JsonDocument> document = JsonDocument::parse(float_hints, kPt2FloatHints);
  if (!document) return;  // hints are optional
  for (auto [srepr, value] : document->root().members()) {
    if (std::optional<double> number = value.as_double()) float_hints_.emplace(srepr, *number);
  }
}

void Pt2TypeWriter::expression(JsonWriter& json, SymExpr expression) {
  auto [found, is_new] = written_.try_emplace(std::bit_cast<const void*>(expression));
  Written& written = found->second;
  if (is_new) {
    written.srepr = symbols_.to_srepr(expression);
    written.hint = symbols_.evaluate(expression, [&](SymExpr symbol) -> std::optional<int64_t> {
      auto hint = hints_.find(symbol.symbol_name());
      if (hint == hints_.end()) return std::nullopt;
      // What was traced may lie outside of a range that was narrowed since, which torch refuses.
      SymRange range = symbols_.range(symbol);
      return range.min <= range.max ? std::clamp(hint->second, range.min, range.max) : hint->second;
    });
  }
  json.key("as_expr").begin_object().key("expr_str").value(written.srepr).key("hint");
  if (written.hint) {
    json.begin_object().key("as_int").value(*written.hint).end_object();
  } else {
    json.null();
  }
  json.end_object();
}

void Pt2TypeWriter::size(JsonWriter& json, SymExpr size) {
  json.begin_object();
  if (std::optional<int64_t> number = size.as_integer()) {
    json.key("as_int").value(*number);
  } else {
    expression(json, size);
  }
  json.end_object();
}

void Pt2TypeWriter::device(JsonWriter& json) const {
  json.key("device").begin_object().key("type").value(device_).key("index").null().end_object();
}

Status Pt2TypeWriter::tensor(JsonWriter& json, const TensorType& type, bool requires_grad) {
  std::optional<int64_t> dtype = pt2_number(type.dtype);
  if (!dtype)
    return fail(ErrorCode::kUnsupportedFeature, format("torch's graphs have no dtype {}", to_text(type.dtype)));
  json.begin_object().key("dtype").value(*dtype).key("sizes").begin_array();
  for (SymExpr dim : type.shape) size(json, dim);
  json.end_array().key("requires_grad").value(requires_grad);
  device(json);
  json.key("strides").begin_array();
  std::vector<SymExpr> contiguous;
  if (type.strides.empty()) contiguous = contiguous_strides(symbols_, type.shape);
  for (SymExpr stride : type.strides.empty() ? contiguous : type.strides) size(json, stride);
  json.end_array();
  json.key("storage_offset").begin_object().key("as_int").value(0).end_object();
  json.key("layout").value(kStridedLayout).end_object();
  return {};
}

Status Pt2TypeWriter::tensor(JsonWriter& json, DType dtype, const std::vector<int64_t>& sizes,
                             const std::vector<int64_t>& strides, bool requires_grad) {
  TensorType type{.dtype = dtype, .shape = {}, .strides = {}};
  for (int64_t size : sizes) type.shape.push_back(symbols_.integer(size));
  for (int64_t stride : strides) type.strides.push_back(symbols_.integer(stride));
  return tensor(json, type, requires_grad);
}

void Pt2TypeWriter::number(JsonWriter& json, const SymType& type) {
  json.begin_object();
  SymExpr value = type.expression;
  if (!value.is_valid() && type.kind == SymType::Kind::kBool) {
    json.key("as_bool").value(true);  // what the trace asserts of it; the node computes it anew
  } else if (!value.is_valid()) {
    // Nothing is known of it: a symbol of its own, as torch has it for data-dependent numbers.
    std::string_view assumption = type.kind == SymType::Kind::kInt ? ", integer=True" : "";
    std::string text = format("Symbol('u{}'{})", 1000000 + unknown_++, assumption);
    json.key("as_expr").begin_object().key("expr_str").value(text).key("hint").null().end_object();
  } else if (std::optional<int64_t> integer = value.as_integer(); integer && type.kind == SymType::Kind::kInt) {
    json.key("as_int").value(*integer);
  } else if (std::optional<bool> flag = value.as_boolean(); flag && type.kind == SymType::Kind::kBool) {
    json.key("as_bool").value(*flag);
  } else if (type.kind == SymType::Kind::kInt) {
    expression(json, value);
  } else {
    std::string srepr = symbols_.to_srepr(value);
    json.key("as_expr").begin_object().key("expr_str").value(srepr).key("hint");
    auto hint = float_hints_.find(srepr);
    if (type.kind == SymType::Kind::kFloat && hint != float_hints_.end()) {
      json.begin_object().key("as_float").value(hint->second).end_object();
    } else {
      json.null();  // booleans have none
    }
    json.end_object();
  }
  json.end_object();
}

std::vector<SymExpr> contiguous_strides(SymContext& symbols, const std::vector<SymExpr>& shape) {
  std::vector<SymExpr> strides(shape.size());
  SymExpr stride = symbols.integer(1);
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    if (shape[i].as_integer() != 0) stride = symbols.mul(stride, shape[i]);
  }
  return strides;
}

}  // namespace argosy
