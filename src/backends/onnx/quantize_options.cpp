#include <algorithm>

#include "backends/onnx/quantize.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

constexpr std::string_view kKeep = "keep", kNf4Name = "nf4";

/// As --quantize has them.
std::string name_of_bits(const Quantization& how, int bits) {
  if (bits == kOwnScheme) return how.own_name;
  if (bits == kNf4) return std::string(kNf4Name);
  return bits == 0 ? "float" : format("int{}", bits);
}

bool uses(const Quantization& how, int bits) {
  return how.bits == bits || std::ranges::find(how.rules, bits, &QuantizeRule::bits) != how.rules.end();
}

/// Whether a package's scheme may be called so: as Python has names.
bool is_name(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_", kDigits = "0123456789";
  return !text.empty() && text.size() <= 64 && kLetters.find(text[0]) != std::string_view::npos &&
         text.find_first_not_of(std::string(kLetters) + std::string(kDigits)) == std::string_view::npos;
}

}  // namespace

std::string_view name_of(QuantizeMethod method) {
  switch (method) {
    case QuantizeMethod::kFitted: return "fitted";
    case QuantizeMethod::kLargest: return "default";
    case QuantizeMethod::kNearest: return "rtn";
    case QuantizeMethod::kWeighted: return "k_quant";
    case QuantizeMethod::kNormal: return kNf4Name;
  }
  return "";
}

int64_t block_of(const Quantization& how) {
  constexpr int64_t kUsual = 32, kUsualOfNf4 = 64;  // bitsandbytes has no other
  if (how.block != 0) return how.block;
  return how.bits == kNf4 ? kUsualOfNf4 : kUsual;
}

bool has_nf4(const Quantization& how) { return uses(how, kNf4); }

int stored_bits(const Quantization& how, int bits) {
  if (bits == kOwnScheme) return how.own ? how.own->bits() : 0;
  return bits == kNf4 ? 4 : bits;
}

Error unknown_scheme(std::string_view name) {
  return {
      ErrorCode::kInvalidInput, format("--quantize does not know {}", quoted(name)),
      "write int4, int8, nf4, keep, dynamic-int8 or dynamic-uint8, or a scheme of a package that is installed, then "
      "exceptions: int4,lm_head=int8,mlp.down_proj=float,embedding=int4"};
}

std::string scheme_of(const Quantization& how) {
  if (how.bits == 0) return "";
  if (how.bits == kOwnScheme) return format("int{}", stored_bits(how, how.bits));
  return how.is_dynamic ? encoding_of(how, how.bits) : name_of_bits(how, how.bits);
}

std::string quantization_text(const Quantization& how) {
  std::vector<std::string> items;
  if (how.bits != 0) items.push_back(how.bits == kOwnScheme ? how.own_name : scheme_of(how));
  if (how.keeps) items.emplace_back(kKeep);
  for (const QuantizeRule& rule : how.rules) items.push_back(format("{}={}", rule.where, name_of_bits(how, rule.bits)));
  return join(items, ",");
}

std::string encoding_of(const Quantization& how, int bits) {
  if (bits == kNf4) return std::string(kNf4Name);
  if (bits == kOwnScheme) return how.own_name;
  if (how.is_dynamic) return how.is_symmetric ? "dynamic-int8" : "dynamic-uint8";
  bool has_zeros = how.method == QuantizeMethod::kWeighted || !how.is_symmetric;
  std::string text = format("{}{}", has_zeros ? "uint" : "int", bits);
  return how.method == QuantizeMethod::kLargest ? text : format("{}-{}", text, name_of(how.method));
}

Status read_quantization(std::string_view text, Quantization& how) {
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string_view item = text.substr(begin, end - begin);
    begin = end + 1;
    if (item == kKeep) {
      how.keeps = true;
      continue;
    }
    size_t equals = item.find('=');
    std::string_view where = equals == std::string_view::npos ? "" : item.substr(0, equals);
    std::string_view what = equals == std::string_view::npos ? item : item.substr(equals + 1);
    const bool is_dynamic = what == "dynamic-int8" || what == "dynamic-uint8";
    int bits = what == "int4" ? 4 : what == "int8" || is_dynamic ? 8 : what == kNf4Name ? kNf4 : 0;
    bool is_known = where.empty() ? bits != 0 : !is_dynamic && (bits != 0 || what == "float");
    if (!is_known && is_name(what) && what != "float") {
      if (!how.own_name.empty() && how.own_name != what) {
        return fail(ErrorCode::kUnsupportedFeature,
                    format("--quantize names the schemes {} and {}, and takes one that is a package's",
                           quoted(how.own_name), quoted(what)),
                    "leave out one of them");
      }
      how.own_name = what;
      bits = kOwnScheme;
      is_known = true;
    }
    if (!is_known || (where.empty() && equals != std::string_view::npos)) return fail(unknown_scheme(item));
    if (where.empty()) {
      how.bits = bits;
      how.is_dynamic = is_dynamic;
      if (is_dynamic) how.is_symmetric = what == "dynamic-int8";
    } else {
      how.rules.push_back({std::string(where), bits});
    }
  }
  return {};
}

Status check_quantization(const Quantization& how) {
  if (uses(how, kOwnScheme) && how.own == nullptr) return fail(unknown_scheme(how.own_name));
  auto is_known = [](int bits) { return bits == 0 || bits == 4 || bits == 8 || bits == kNf4 || bits == kOwnScheme; };
  bool has_known = is_known(how.bits) && std::ranges::all_of(how.rules, is_known, &QuantizeRule::bits);
  if (!has_known) return fail(ErrorCode::kInvalidInput, "weights are stored in 4 or 8 bits", "use int4, int8 or nf4");
  auto looks_up_nf4 = [](const QuantizeRule& rule) { return rule.where == kEmbeddingRule && rule.bits == kNf4; };
  if (std::ranges::any_of(how.rules, looks_up_nf4)) {
    return fail(ErrorCode::kUnsupportedFeature, "ONNX Runtime looks up no rows of weights in NF4",
                "write embedding=int4 or embedding=int8, or leave it out");
  }
  if (how.is_dynamic && how.keeps) {
    return fail(ErrorCode::kInvalidInput, format("--quantize {} and keep fit no product together", encoding_of(how, 8)),
                "leave out one of them");
  }
  if (how.is_dynamic &&
      std::ranges::any_of(how.rules, [](const QuantizeRule& rule) { return rule.bits != 0 && rule.bits != 8; })) {
    return fail(ErrorCode::kInvalidInput, format("{} has weights of 8 bits only", encoding_of(how, 8)),
                "write int8 or float in its exceptions, or --quantize int8");
  }
  const int64_t block = block_of(how);
  if (block < 16 || block > 256 || (block & (block - 1)) != 0) {
    return fail(ErrorCode::kInvalidInput, format("--quantize-block {} fits no kernel", block),
                "use 16, 32, 64, 128 or 256");
  }
  if (how.method == QuantizeMethod::kFitted || how.method == QuantizeMethod::kNormal)
    return fail(ErrorCode::kInvalidInput, "that method is not ONNX Runtime's", "use default, rtn or k_quant");
  return {};
}

}  // namespace argosy::onnx
