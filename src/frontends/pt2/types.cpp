#include "frontends/pt2/types.h"

#include <vector>

#include "base/checked_math.h"
#include "base/text.h"
#include "io/pt2_format.h"

namespace argosy {
namespace {

constexpr int64_t kStridedLayout = 7;

}  // namespace

Result<SymExpr> TypeReader::size(const JsonField& value) {
  ARGOSY_TRY(auto tag, value.tag());
  JsonField inner = value.child(tag.first, tag.second);
  if (tag.first == "as_int") {
    ARGOSY_TRY(int64_t number, inner.integer());
    return symbols_.integer(number);
  }
  if (tag.first == "as_expr") return expression(inner);
  return value.error(format("unknown kind of size {}", quoted(tag.first)));
}

Result<SymExpr> TypeReader::expression(const JsonField& as_expr) {
  ARGOSY_TRY(std::string_view text, as_expr.member("expr_str").string());
  auto found = parsed_.find(text);
  if (found != parsed_.end()) return found->second;
  Result<SymExpr> parsed = symbols_.parse_srepr(text);
  if (!parsed) return fail(std::move(parsed.error().in(as_expr.path())));
  parsed_.emplace(text, *parsed);
  set_ranges_in(text);
  if (parsed->kind() == SymKind::kSymbol) {
    JsonView hint = as_expr.view().find("hint");
    if (hint.is_object()) {
      if (std::optional<int64_t> number = hint.only_member().second.as_integer())
        hints_.emplace(parsed->symbol_name(), *number);
    }
  }
  return *parsed;
}

void TypeReader::set_ranges_in(std::string_view srepr) {
  constexpr std::string_view kSymbol = "Symbol('";
  for (size_t at = srepr.find(kSymbol); at != std::string_view::npos; at = srepr.find(kSymbol, at)) {
    at += kSymbol.size();
    std::string_view name = srepr.substr(at, srepr.find('\'', at) - at);
    if (met_.contains(name)) continue;
    met_.emplace(name, true);
    auto range = ranges_.find(name);
    if (range != ranges_.end()) symbols_.set_range(symbols_.symbol(name), range->second);
  }
}

Result<TensorType> TypeReader::tensor(const JsonField& meta) {
  ARGOSY_TRY_STATUS(meta.require_object());
  TensorType type;
  ARGOSY_TRY(int64_t dtype_number, meta.member("dtype").integer());
  std::optional<DType> dtype = dtype_from_pt2(dtype_number);
  if (!dtype) {
    return meta.member("dtype").error(ErrorCode::kUnsupportedFeature, format("unknown dtype number {}", dtype_number));
  }
  type.dtype = *dtype;
  JsonField layout = meta.member("layout");
  if (layout.is_valid()) {
    ARGOSY_TRY(int64_t number, layout.integer());
    if (number != kStridedLayout) {
      return layout.error(ErrorCode::kUnsupportedFeature, format("tensor layout {} is not strided", number),
                          "sparse and other layouts cannot be exported: convert the tensor with to_dense()");
    }
  }
  JsonField sizes = meta.member("sizes");
  JsonField strides = meta.member("strides");
  ARGOSY_TRY_STATUS(sizes.require_array());
  ARGOSY_TRY_STATUS(strides.require_array());
  std::vector<int64_t> known;
  int64_t index = 0;
  for (JsonView item : sizes.view().items()) {
    JsonField field = sizes.item(item, index++);
    if (index > static_cast<int64_t>(kMaxRank)) return sizes.error(format("more than {} dims", kMaxRank));
    ARGOSY_TRY(SymExpr dim, size(field));
    if (std::optional<int64_t> number = dim.as_integer()) {
      if (*number < 0) return field.error(format("negative size {}", *number));
      known.push_back(*number);
    }
    type.shape.push_back(dim);
  }
  if (!element_count(known)) return sizes.error("number of elements overflows");
  index = 0;
  for (JsonView item : strides.view().items()) {
    JsonField field = strides.item(item, index++);
    if (index > static_cast<int64_t>(type.shape.size())) break;
    ARGOSY_TRY(SymExpr stride, size(field));
    type.strides.push_back(stride);
  }
  if (index != static_cast<int64_t>(type.shape.size())) {
    return strides.error(
        format("expected {} strides, one for each size, found {}", type.shape.size(), strides.view().size()));
  }
  drop_contiguous_strides(type);
  return type;
}

void TypeReader::drop_contiguous_strides(TensorType& type) {
  if (is_row_major(symbols_, type.shape, type.strides)) type.strides.clear();
}

Result<SymType> TypeReader::number(SymType::Kind kind, const JsonField& value) {
  ARGOSY_TRY(auto tag, value.tag());
  JsonField inner = value.child(tag.first, tag.second);
  SymType type{.kind = kind, .expression = {}};
  if (tag.first == "as_expr") {
    Result<SymExpr> parsed = expression(inner);
    // Bounds of unbacked sizes lead to comparisons with integers of more than 64 bits: the number is left open then.
    bool is_beyond = !parsed && parsed.error().code == ErrorCode::kUnsupportedFeature;
    if (!parsed && !is_beyond) return fail(std::move(parsed).error());
    if (!parsed) return type;
    type.expression = *parsed;
    JsonView hint = inner.view().find("hint").find("as_float");
    if (std::optional<double> number = hint.as_double()) float_hints_.emplace(symbols_.to_srepr(*parsed), *number);
    return type;
  }
  if (kind == SymType::Kind::kInt && tag.first == "as_int") {
    ARGOSY_TRY(int64_t number, inner.integer());
    type.expression = symbols_.integer(number);
    return type;
  }
  if (kind == SymType::Kind::kFloat && tag.first == "as_float") {
    ARGOSY_TRY(double number, inner.number());
    type.expression = symbols_.real(number);
    return type;
  }
  if (kind == SymType::Kind::kBool && tag.first == "as_bool") {
    ARGOSY_TRY(bool flag, inner.boolean());
    type.expression = symbols_.boolean(flag);
    return type;
  }
  return value.error(format("unknown kind of number {}", quoted(tag.first)));
}

bool is_row_major(SymContext& symbols, const std::vector<SymExpr>& shape, const std::vector<SymExpr>& strides) {
  SymExpr one = symbols.integer(1);
  SymExpr expected = one;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == one) continue;
    if (strides[i] != expected) return false;
    if (shape[i].as_integer() == 0) continue;
    expected = expected == one ? shape[i] : symbols.mul(expected, shape[i]);
  }
  return true;
}

}  // namespace argosy
