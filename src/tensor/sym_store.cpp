#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "tensor/sym_node.h"

namespace argosy {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001B3u;
  return hash;
}

uint64_t hash_of(const SymNode& node) {
  uint64_t hash = mix(static_cast<uint64_t>(node.kind), node.operands.size());
  hash = mix(hash, static_cast<uint64_t>(node.integer));
  hash = mix(hash, std::bit_cast<uint64_t>(node.real));
  if (!node.name.empty()) hash = mix(hash, hash_text(node.name));
  for (SymExpr operand : node.operands) hash = mix(hash, SymStore::node(operand).hash);
  return hash;
}

SymType common_type(std::span<const SymExpr> operands) {
  SymType type = SymType::kInt;
  for (SymExpr operand : operands) {
    SymType other = SymStore::node(operand).type;
    if (other == SymType::kReal && type != SymType::kUnknown) type = SymType::kReal;
    if (other == SymType::kUnknown || other == SymType::kBool) type = SymType::kUnknown;
  }
  return type;
}

SymType call_type(std::string_view name, std::span<const SymExpr> arguments) {
  static constexpr std::string_view kIntegers[] = {"FloorToInt",
                                                   "CeilToInt",
                                                   "TruncToInt",
                                                   "RoundToInt",
                                                   "CeilDiv",
                                                   "LShift",
                                                   "ModularIndexing",
                                                   "PowByNatural",
                                                   "RShift",
                                                   "floor",
                                                   "ceiling",
                                                   "sign",
                                                   "BitwiseFn_bitwise_and",
                                                   "BitwiseFn_bitwise_or",
                                                   "BitwiseFn_bitwise_xor"};
  static constexpr std::string_view kReals[] = {"ToFloat",    "TruncToFloat", "RoundDecimal", "FloatPow",
                                                "IntTrueDiv", "FloatTrueDiv", "Rational"};
  if (name == "Add" || name == "Mul" || name == "Abs") return common_type(arguments);
  if (std::find(std::begin(kIntegers), std::end(kIntegers), name) != std::end(kIntegers)) return SymType::kInt;
  if (std::find(std::begin(kReals), std::end(kReals), name) != std::end(kReals)) return SymType::kReal;
  return big_integer_sign(name, arguments) != 0 ? SymType::kInt : SymType::kUnknown;
}

SymType type_of(const SymNode& node) {
  switch (node.kind) {
    case SymKind::kInteger: return SymType::kInt;
    case SymKind::kFloat:
    case SymKind::kTrueDiv: return SymType::kReal;
    case SymKind::kSymbol:
      return node.assumptions.is_integer ? SymType::kInt
             : node.assumptions.is_real  ? SymType::kReal
                                         : SymType::kUnknown;
    case SymKind::kAdd:
    case SymKind::kMul:
    case SymKind::kMin:
    case SymKind::kMax:
    case SymKind::kFloorDiv:
    case SymKind::kMod: return common_type(node.operands);
    case SymKind::kPow: {
      SymType type = common_type(node.operands);
      if (type == SymType::kInt && SymStore::node(node.operands[1]).assumed.min < 0) return SymType::kReal;
      return type;
    }
    case SymKind::kIte: {
      SymType type = SymStore::node(node.operands[1]).type;
      return type == SymStore::node(node.operands[2]).type ? type : common_type(node.operands.subspan(1));
    }
    case SymKind::kCall: return call_type(node.name, node.operands);
    default: return SymType::kBool;
  }
}

template <class T>
int three_way(T a, T b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

}  // namespace

int big_integer_sign(std::string_view function, std::span<const SymExpr> arguments) {
  if (function != kBigInteger || arguments.size() < 2) return 0;
  int sign = 0;
  Int128 leading = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const SymNode& limb = SymStore::node(arguments[i]);
    if (limb.kind != SymKind::kInteger || limb.integer >= kBigIntegerBase || limb.integer <= -kBigIntegerBase) return 0;
    if (i == 0) sign = (limb.integer > 0) - (limb.integer < 0);
    if (sign == 0 || (sign > 0 ? limb.integer < 0 : limb.integer > 0)) return 0;
    if (i < 2) leading = leading * kBigIntegerBase + limb.integer;
  }
  // What int64 holds has a better form.
  return arguments.size() == 2 && fits_int64(leading) ? 0 : sign;
}

SymStore::SymStore() : arena_(size_t{1} << 14) {}

bool SymStore::SameNode::operator()(const SymNode* a, const SymNode* b) const {
  return a->hash == b->hash && a->kind == b->kind && a->integer == b->integer &&
         std::bit_cast<uint64_t>(a->real) == std::bit_cast<uint64_t>(b->real) && a->name == b->name &&
         std::equal(a->operands.begin(), a->operands.end(), b->operands.begin(), b->operands.end());
}

std::string_view SymStore::keep(std::string_view text) {
  if (text.empty()) return {};
  auto* copy = static_cast<char*>(arena_.allocate(text.size(), 1));
  std::memcpy(copy, text.data(), text.size());
  return {copy, text.size()};
}

SymExpr SymStore::intern(SymNode& candidate) {
  work_ += 1 + candidate.operands.size();
  candidate.hash = hash_of(candidate);
  auto found = table_.find(&candidate);
  if (found != table_.end()) return SymExpr(*found);

  candidate.name = keep(candidate.name);
  for (SymExpr operand : candidate.operands) candidate.depth = std::max(candidate.depth, node(operand).depth + 1);
  if (!candidate.operands.empty()) {
    size_t bytes = candidate.operands.size_bytes();
    auto* copy = static_cast<SymExpr*>(arena_.allocate(bytes, alignof(SymExpr)));
    std::uninitialized_copy(candidate.operands.begin(), candidate.operands.end(), copy);
    candidate.operands = {copy, candidate.operands.size()};
  }
  auto* stored = new (arena_.allocate(sizeof(SymNode), alignof(SymNode))) SymNode(candidate);
  stored->monic = stored;
  if (stored->kind == SymKind::kMul && node(stored->operands[0]).kind == SymKind::kInteger) {
    auto factors = stored->operands.subspan(1);
    stored->coefficient = node(stored->operands[0]).integer;
    stored->monic = &node(factors.size() == 1 ? factors[0] : make(SymKind::kMul, factors));
  }
  stored->type = type_of(*stored);
  if (stored->type == SymType::kInt) stored->assumed = assumed_range_of(*stored);
  stored->id = next_id_++;
  table_.insert(stored);
  if (stored->kind == SymKind::kSymbol) symbols_.push_back(SymExpr(stored));
  return SymExpr(stored);
}

SymExpr SymStore::integer(int64_t value) {
  SymNode candidate;
  candidate.integer = value;
  return intern(candidate);
}

SymExpr SymStore::real(double value) {
  SymNode candidate;
  candidate.kind = SymKind::kFloat;
  candidate.real = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
  return intern(candidate);
}

SymExpr SymStore::boolean(bool value) {
  SymNode candidate;
  candidate.kind = SymKind::kBoolean;
  candidate.integer = value ? 1 : 0;
  return intern(candidate);
}

SymExpr SymStore::symbol(std::string_view name, SymAssumptions assumptions) {
  SymNode candidate;
  candidate.kind = SymKind::kSymbol;
  candidate.name = name;
  candidate.assumptions = assumptions;
  return intern(candidate);
}

SymExpr SymStore::make(SymKind kind, std::span<const SymExpr> operands, std::string_view name) {
  SymNode candidate;
  candidate.kind = kind;
  candidate.name = name;
  candidate.operands = operands;
  return intern(candidate);
}

int SymStore::compare_order(SymExpr first, SymExpr second) {
  // A loop, not a recursion: only the first pair of operands that differ is looked into.
  const SymNode* a = first.node_;
  const SymNode* b = second.node_;
  while (a != b) {
    if (a->kind != b->kind) return three_way(a->kind, b->kind);
    if (a->integer != b->integer) return three_way(a->integer, b->integer);
    if (a->kind == SymKind::kFloat) {
      if (a->real < b->real || b->real < a->real) return three_way(a->real, b->real);
      return three_way(std::bit_cast<uint64_t>(a->real), std::bit_cast<uint64_t>(b->real));
    }
    if (int order = a->name.compare(b->name); order != 0) return order;
    if (a->operands.size() != b->operands.size()) return three_way(a->operands.size(), b->operands.size());
    auto [x, y] = std::mismatch(a->operands.begin(), a->operands.end(), b->operands.begin());
    ARGOSY_CHECK(x != a->operands.end(), "two interned expressions are alike");
    a = x->node_;
    b = y->node_;
  }
  return 0;
}

}  // namespace argosy
