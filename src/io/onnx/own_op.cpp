#include "io/onnx/own_op.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text.h"

namespace argosy {
namespace {

constexpr size_t kMaxName = 200;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_name(std::string_view text, std::string_view others) {
  return !text.empty() && text.size() <= kMaxName && is_letter(text[0]) && std::ranges::all_of(text, [&](char c) {
    return is_letter(c) || is_digit(c) || others.find(c) != std::string_view::npos;
  });
}

}  // namespace

Status check(const OwnOp& op) {
  if (!is_name(op.domain, ".-") || op.domain == "ai.onnx" || op.domain.starts_with("ai.onnx."))
    return fail(ErrorCode::kCorruptFile, format("{} is no domain for an op of one's own", quoted(op.domain)));
  if (!is_name(op.name, "")) return fail(ErrorCode::kCorruptFile, format("{} is no op of ONNX", quoted(op.name)));
  if (op.version < 1 || op.version > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kCorruptFile, format("{} is no version of a domain", op.version));
  return {};
}

std::string to_text(const OwnOp& op) { return format("{}.{} {}", op.domain, op.name, op.version); }

Result<OwnOp> parse_own_op(std::string_view text) {
  size_t space = text.find(' ');
  size_t dot = text.substr(0, space).rfind('.');
  OwnOp op;
  bool is_number = false;
  if (space != std::string_view::npos && dot != std::string_view::npos) {
    op.domain = text.substr(0, dot);
    op.name = text.substr(dot + 1, space - dot - 1);
    auto [end, error] = std::from_chars(text.data() + space + 1, text.data() + text.size(), op.version);
    is_number = error == std::errc() && end == text.data() + text.size();
  }
  if (!is_number) return fail(ErrorCode::kCorruptFile, format("{} is no \"domain.Name version\"", quoted(text)));
  ARGOSY_TRY_STATUS(check(op));
  return op;
}

}  // namespace argosy
