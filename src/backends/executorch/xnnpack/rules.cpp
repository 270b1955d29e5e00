#include "backends/executorch/rules.h"

#include "passes/aten_builder.h"

namespace argosy::executorch {
namespace {

/// Where a slice of the last dim begins and ends; nullopt: another dim, steps, or computed.
struct LastPart {
  ValueId of;
  int64_t first = 0, end = 0;
};

std::optional<LastPart> last_part(AtenBuilder& f, ValueId tensor) {
  const Node* slice = f.made_by(tensor, "aten.slice.Tensor");
  if (slice == nullptr) return std::nullopt;
  LastPart part{f.operand(*slice, 0)};
  std::optional<int64_t> size = f.size(part.of, -1).as_integer();
  auto number = [&](size_t argument, int64_t none) -> std::optional<int64_t> {
    if (slice->arguments[argument].is<None>()) return none;
    const auto* value = slice->arguments[argument].get_if<int64_t>();
    return value == nullptr ? std::nullopt : std::optional(*value);
  };
  std::optional<int64_t> dim = number(1, 0), first = number(2, 0), end = number(3, INT64_MAX), step = number(4, 1);
  if (!size || !dim || !first || !end || step != 1 || wrap_dim(*dim, f.rank(part.of)) != f.rank(part.of) - 1) {
    return std::nullopt;
  }
  part.first = *first < 0 ? *first + *size : *first;
  part.end = std::min(*end < 0 ? *end + *size : *end, *size);
  return part;
}

/// The tensor whose halves are swapped, the second one negated: cat(-x[n/2:], x[:n/2]), as rotary positions have it.
std::optional<ValueId> before_rotation(AtenBuilder& f, ValueId tensor) {
  const Node* cat = f.made_by(tensor, "aten.cat.default");
  if (cat == nullptr) return std::nullopt;
  const ValueList parts = std::get<ValueList>(cat->arguments[0].variant());
  const auto* dim = cat->arguments[1].get_if<int64_t>();
  if (parts.size() != 2 || dim == nullptr || wrap_dim(*dim, f.rank(tensor)) != f.rank(tensor) - 1) return std::nullopt;
  const Node* neg = f.made_by(parts[0], "aten.neg.default");
  if (neg == nullptr) return std::nullopt;
  std::optional<LastPart> high = last_part(f, f.operand(*neg, 0));
  std::optional<LastPart> low = last_part(f, parts[1]);
  if (!high || !low || high->of != low->of) return std::nullopt;
  int64_t size = *f.size(low->of, -1).as_integer();
  bool is_half = low->first == 0 && low->end == high->first && high->end == size && 2 * low->end == size;
  return is_half ? std::optional(low->of) : std::nullopt;
}

/// A slice costs XNNPACK more than a copy, so halves are swapped by a single slice: from the middle of the tensor
/// joined to itself. The sign is moved to the other factor, which all layers share.
bool swap_halves(AtenBuilder& f) {
  for (bool is_first : {true, false}) {
    ValueId rotated = f[is_first ? "self" : "other"], factor = f[is_first ? "other" : "self"];
    std::optional<ValueId> x = before_rotation(f, rotated);
    if (!x || f.rank(factor) == 0 || f.size(factor, -1) != f.size(*x, -1) || f.dtype(factor) != f.dtype(*x)) continue;
    int64_t half = *f.size(*x, -1).as_integer() / 2;
    ValueId swapped = f.slice(f.cat({*x, *x}, -1), -1, half, f.integer(2 * half));
    ValueId low = f.neg(f.slice(factor, -1, 0, f.integer(half)));
    ValueId high = f.slice(factor, -1, half, f.integer(half));
    return f.replace(f.mul(swapped, f.cat({low, high}, -1)));
  }
  return false;
}

/// Drops an expand of an operand to the shape to which the op broadcasts it anyway.
bool drop_expand(AtenBuilder& f) {
  for (bool is_first : {true, false}) {
    ValueId expanded = f[is_first ? "self" : "other"], other = f[is_first ? "other" : "self"];
    const Node* expand = f.made_by(expanded, "aten.expand.default");
    if (expand == nullptr) continue;
    ValueId own = f.operand(*expand, 0);
    const Sizes result = f.result().shape, from = f.shape(own), with = f.shape(other);
    bool is_same = f.dtype(own) == f.dtype(expanded) && std::max(from.size(), with.size()) == result.size();
    for (size_t back = 1; is_same && back <= result.size(); ++back) {
      auto size = [&](const Sizes& shape) { return back > shape.size() ? f.one() : shape[shape.size() - back]; };
      is_same = size(from) == result[result.size() - back] ||
                (size(from) == f.one() && size(with) == result[result.size() - back]);
    }
    if (!is_same) continue;
    return f.replace(f.repeated({{is_first ? "self" : "other", own}}));
  }
  return false;
}

/// Every n-th element of the last dim is a column, once the dim is reshaped into groups of n.
bool slice_pairs(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<size_t> dim = f.dim("dim", f.rank(x));
  std::optional<int64_t> step = f.integer("step"), size = f.rank(x) == 0 ? std::nullopt : f.size(x, -1).as_integer();
  std::optional<int64_t> first = f.has("start") ? f.integer("start") : 0;
  std::optional<int64_t> end = f.has("end") ? f.integer("end") : INT64_MAX;
  if (!dim || *dim != f.rank(x) - 1 || !step || *step < 2 || !size || *size % *step != 0 || !first || *first < 0 ||
      *first >= *step || !end || *end < *size) {
    return false;
  }
  Sizes pairs = f.shape(x);
  pairs.back() = f.integer(*size / *step);
  pairs.push_back(f.integer(*step));
  return f.replace(f.select(f.reshape(x, pairs), -1, *first));
}

/// Attention in which heads that share keys are rows of one product, and separate queries again for the mask: a reshape
/// of two sizes that vary, which XNNPACK cannot do. With a dim for the heads of a group it is not needed.
struct SharedHeads {
  ValueId queries, keys, mask;
};

std::optional<SharedHeads> shared_heads(AtenBuilder& f, ValueId weights) {
  const Node* rows = f.made_by(weights, "aten.reshape.default");
  const Node* softmax = f.made_by(rows, 0, "aten.softmax.int");
  const Node* add = f.made_by(softmax, 0, "aten.add.Tensor");
  const Node* heads = f.made_by(add, 0, "aten.reshape.default");
  const Node* product = f.made_by(heads, 0, "aten.matmul.default");
  const Node* grouped = f.made_by(product, 0, "aten.reshape.default");
  if (grouped == nullptr || add->arguments[2] != Argument(int64_t{1})) return std::nullopt;
  SharedHeads found{f.operand(*grouped, 0), f.operand(*product, 1), f.operand(*add, 1)};
  const ValueId scores = f.operand(*add, 0), dim_owner = f.operand(*softmax, 0);
  bool is_last = softmax->arguments[1] == Argument(int64_t{-1}) || softmax->arguments[1] == Argument(int64_t{3});
  if (!is_last || f.rank(found.queries) != 4 || f.rank(found.keys) != 4 || f.rank(scores) != 4 ||
      f.rank(found.mask) > 4 || f.dtype(dim_owner) != f.dtype(found.queries)) {
    return std::nullopt;
  }
  return found;
}

bool group_heads(AtenBuilder& f) {
  std::optional<SharedHeads> heads = shared_heads(f, f["self"]);
  if (!heads) return false;
  ValueId values = f["other"];
  auto fixed = [&](SymExpr size) -> std::optional<int64_t> {
    if (std::optional<int64_t> number = size.as_integer()) return number;
    SymRange range = f.symbols().range(size);
    return range.min == range.max ? std::optional(range.min) : std::nullopt;
  };
  const Sizes queries = f.shape(heads->queries), keys = f.shape(heads->keys), mask = f.shape(heads->mask);
  std::optional<int64_t> all = fixed(queries[1]), own = fixed(keys[1]);
  bool is_wanted = fixed(queries[0]) == 1 && !fixed(queries[2]) && !fixed(keys[3]) && fixed(queries[3]);
  if (!is_wanted || !all || !own || *own == 0 || *all % *own != 0) return false;
  // Aligned at the last dim, the mask broadcasts over the same dims as before if it has no heads of its own.
  for (size_t i = 0; i + 2 < mask.size(); ++i) {
    if (fixed(mask[i]) != 1) return false;
  }
  Sizes split = {queries[0], f.integer(*own), f.integer(*all / *own), queries[2], queries[3]};
  ValueId q = f.reshape(heads->queries, split);
  ValueId scores = f.matmul(q, f.unsqueeze(heads->keys, 2));
  ValueId weights = f.softmax(f.add(scores, heads->mask), -1);
  ValueId result = f.matmul(weights, f.unsqueeze(values, 2));
  return f.replace(f.reshape(result, f.result().shape, {heads->queries}));
}

constexpr RewriteRule kXnnpackRules[] = {
    {.op = "aten.add.Tensor", .name = "drop-expand", .apply = write<drop_expand>},
    {.op = "aten.div.Tensor", .name = "drop-expand", .apply = write<drop_expand>},
    {.op = "aten.matmul.default", .name = "group-heads", .apply = write<group_heads>},
    {.op = "aten.maximum.default", .name = "drop-expand", .apply = write<drop_expand>},
    {.op = "aten.minimum.default", .name = "drop-expand", .apply = write<drop_expand>},
    {.op = "aten.mul.Tensor", .name = "swap-halves", .apply = write<swap_halves>},
    {.op = "aten.mul.Tensor", .name = "drop-expand", .apply = write<drop_expand>},
    {.op = "aten.slice.Tensor", .name = "slice-pairs", .apply = write<slice_pairs>},
    {.op = "aten.sub.Tensor", .name = "drop-expand", .apply = write<drop_expand>},
};

}  // namespace

std::span<const RewriteRule> xnnpack_rules() { return kXnnpackRules; }

}  // namespace argosy::executorch
