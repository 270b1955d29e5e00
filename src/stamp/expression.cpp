#include "stamp/expression.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/text.h"

namespace argosy::stamp {
namespace {

using Product = std::map<std::string, uint32_t>;  // powers of symbols
using Sum = std::map<Product, int64_t>;           // factors of products; none is zero

constexpr uint32_t kMostExpanded = 8;  // a higher power, or a longer sum, stays as it is
constexpr size_t kMostTerms = 256;

bool add(Sum& sum, const Product& product, int64_t factor) {
  int64_t& there = sum[product];
  if (__builtin_add_overflow(there, factor, &there)) return false;
  if (there == 0) sum.erase(product);
  return sum.size() <= kMostTerms;
}

std::optional<Sum> multiply(const Sum& a, const Sum& b) {
  Sum out;
  for (const auto& [x, m] : a) {
    for (const auto& [y, n] : b) {
      Product product = x;
      for (const auto& [symbol, power] : y) product[symbol] += power;
      int64_t factor = 0;
      if (__builtin_mul_overflow(m, n, &factor) || !add(out, product, factor)) return std::nullopt;
    }
  }
  return out;
}

std::optional<int64_t> integer(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "Name(a, b)" in parts; nothing if the text is no call.
struct Call {
  std::string_view name;
  std::vector<std::string_view> arguments;
};

std::optional<Call> parse_call(std::string_view text) {
  size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return std::nullopt;
  Call call{text.substr(0, open), {}};
  int depth = 0;
  size_t start = open + 1;
  for (size_t i = start; i < text.size(); ++i) {
    bool is_end = depth == 0 && (text[i] == ',' || text[i] == ')');
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && depth-- == 0 && i + 1 != text.size()) return std::nullopt;
    if (!is_end) continue;
    start = std::min(text.find_first_not_of(' ', start), i);
    call.arguments.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  return call;
}

std::optional<Sum> parse(std::string_view text);

std::optional<Sum> symbol(const Call& call, std::string_view text) {
  if (call.name == "Symbol") return Sum{{{{std::string(text), 1}}, 1}};
  std::vector<std::string> arguments;
  for (std::string_view each : call.arguments) arguments.push_back(canonical_expression(each));
  return Sum{{{{format("{}({})", call.name, join(arguments, ", ")), 1}}, 1}};
}

std::optional<Sum> power(const Call& call) {
  std::optional<Call> exponent = call.arguments.size() == 2 ? parse_call(call.arguments[1]) : std::nullopt;
  if (!exponent || exponent->name != "Integer" || exponent->arguments.size() != 1) return std::nullopt;
  std::optional<int64_t> times = integer(exponent->arguments[0]);
  std::optional<Sum> base = parse(call.arguments[0]);
  if (!times || *times < 0 || *times > kMostExpanded || !base) return std::nullopt;
  std::optional<Sum> out = Sum{{{}, 1}};
  for (int64_t i = 0; out && i < *times; ++i) out = multiply(*out, *base);
  return out;
}

std::optional<Sum> parse(std::string_view text) {
  std::optional<Call> call = parse_call(text);
  if (!call) return std::nullopt;
  if (call->name == "Integer" && call->arguments.size() == 1) {
    std::optional<int64_t> value = integer(call->arguments[0]);
    if (!value) return std::nullopt;
    return *value == 0 ? Sum{} : Sum{{{}, *value}};
  }
  if (call->name == "Pow") {
    std::optional<Sum> expanded = power(*call);
    return expanded ? expanded : symbol(*call, text);
  }
  if (call->name != "Add" && call->name != "Mul") return symbol(*call, text);
  Sum out;
  if (call->name == "Mul") out = {{{}, 1}};
  for (std::string_view each : call->arguments) {
    std::optional<Sum> part = parse(each);
    if (!part) return std::nullopt;
    if (call->name == "Mul") {
      std::optional<Sum> product = multiply(out, *part);
      if (!product) return std::nullopt;
      out = *std::move(product);
      continue;
    }
    for (const auto& [product, factor] : *part) {
      if (!add(out, product, factor)) return std::nullopt;
    }
  }
  return out;
}

std::string written(std::vector<std::string> parts, std::string_view call) {
  return parts.size() == 1 ? std::move(parts[0]) : format("{}({})", call, join(parts, ", "));
}

std::string written(const Sum& sum) {
  if (sum.empty()) return "Integer(0)";
  std::vector<std::string> terms;
  for (const auto& [product, factor] : sum) {
    std::vector<std::string> factors;
    if (factor != 1 || product.empty()) factors.push_back(format("Integer({})", factor));
    for (const auto& [symbol, power] : product)
      factors.push_back(power == 1 ? symbol : format("Pow({}, Integer({}))", symbol, power));
    terms.push_back(written(std::move(factors), "Mul"));
  }
  return written(std::move(terms), "Add");
}

/// The text with `change` done to each value of "expr_str"; expressions hold no quotes and no backslashes.
template <class Change>
std::string change_expressions(std::string_view json, Change change) {
  constexpr std::string_view kKey = "\"expr_str\":\"";
  std::string out;
  size_t done = 0;
  for (size_t at = json.find(kKey); at != std::string_view::npos; at = json.find(kKey, done)) {
    size_t start = at + kKey.size(), end = json.find('"', start);
    if (end == std::string_view::npos) break;
    out += json.substr(done, start - done);
    out += change(json.substr(start, end - start));
    done = end;
  }
  return out += json.substr(done);
}

}  // namespace

std::string canonical_expression(std::string_view text) {
  std::optional<Sum> sum = parse(text);
  return sum ? written(*sum) : std::string(text);
}

std::string with_canonical_expressions(std::string_view json) {
  return change_expressions(json, [](std::string_view text) { return canonical_expression(text); });
}

std::string Symbols::renamed(std::string_view expression) { return canonical_expression(numbered(expression)); }

std::string Symbols::renamed_in(std::string_view json) {
  return change_expressions(json, [this](std::string_view text) { return renamed(text); });
}

std::string Symbols::numbered(std::string_view text) {
  constexpr std::string_view kSymbol = "Symbol('";
  std::string out;
  size_t done = 0;
  for (size_t at = text.find(kSymbol); at != std::string_view::npos; at = text.find(kSymbol, done)) {
    size_t start = at + kSymbol.size(), end = text.find('\'', start);
    if (end == std::string_view::npos) break;
    size_t number = numbers_.emplace(std::string(text.substr(start, end - start)), numbers_.size()).first->second;
    out += text.substr(done, start - done);
    out += std::to_string(number);
    done = end;
  }
  return out += text.substr(done);
}

}  // namespace argosy::stamp
