#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/structures/heads.h"
#include "passes/structures/recognise.h"
#include "passes/structures/structures.h"

// Queries and keys are turned by angles that depend on the position of their token: with the halves a and b of a head,
// a * cos - b * sin and b * cos + a * sin. Where pairs are turned, a and b are the elements at even and at odd places.

namespace argosy {
namespace {

// x is [batch, tokens, heads * width], cos and sin are [batch or 1, tokens, turned / 2]: the first elements of each
// head are turned, the others stay as they are.
constexpr std::string_view kRotarySchema =
    "argosy::rotary(Tensor x, Tensor cos, Tensor sin, int heads, bool pairs) -> Tensor";

bool decompose_rotary(AtenBuilder& f) {
  ValueId x = split_heads(f, f["x"], *f.integer("heads")), cos = f.unsqueeze(f["cos"], 1),
          sin = f.unsqueeze(f["sin"], 1);
  SymExpr half = f.size(cos, -1);
  bool is_pairs = f.flag("pairs");
  ValueId a = f.slice(x, -1, 0, half, is_pairs ? 2 : 1);
  ValueId b = f.slice(x, -1, is_pairs ? 1 : *half.as_integer(), half, is_pairs ? 2 : 1);
  // One after the other: compilers differ in the order of arguments, and nodes are in the order of calls.
  ValueId a_cos = f.mul(a, cos), b_sin = f.mul(b, sin), first = f.sub(a_cos, b_sin);
  ValueId b_cos = f.mul(b, cos), a_sin = f.mul(a, sin), second = f.add(b_cos, a_sin);
  Sizes shape = f.shape(x);
  shape.back() = f.symbols().mul(half, f.integer(2));
  ValueId turned = is_pairs ? f.reshape(f.cat({f.unsqueeze(first, -1), f.unsqueeze(second, -1)}, -1), std::move(shape))
                            : f.cat({first, second}, -1);
  int64_t count = 2 * *half.as_integer(), width = *f.size(x, -1).as_integer();
  if (count < width) turned = f.cat({turned, f.slice(x, -1, count, f.integer(width - count))}, -1);
  return f.replace(merge_heads(f, turned));
}

/// Whether a slice takes half of the elements of the last dim, from `start` on.
bool is_half(const AtenBuilder& f, const Node& slice, int64_t start, int64_t every) {
  std::optional<int64_t> width = f.size(AtenBuilder::operand(slice, 0), -1).as_integer();
  return starts_at(f, slice, start, every) && width && *width % 2 == 0 &&
         f.size(slice.outputs[0], -1).as_integer() == *width / 2;
}

/// What a tensor is with a negated half moved in front of the other.
struct Swapped {
  ValueId x;  // invalid: the tensor is something else
  bool pairs = false;
};

/// cat(-b, a), or its elements in turn.
Swapped find_swapped(const AtenBuilder& f, ValueId tensor) {
  const Node* flattened = f.made_by(tensor, "aten.reshape.default");
  bool is_pairs = flattened != nullptr;
  ValueId whole = is_pairs ? AtenBuilder::operand(*flattened, 0) : tensor;
  const Node* joined = f.made_by(whole, "aten.cat.default");
  if (joined == nullptr) return {};
  const auto* parts = joined->arguments[0].get_if<ValueList>();
  const auto* dim = joined->arguments[1].get_if<int64_t>();
  auto last = static_cast<int64_t>(f.rank(whole)) - 1;
  if (parts == nullptr || parts->size() != 2 || dim == nullptr || *dim != last) return {};
  ValueId first = (*parts)[0], second = (*parts)[1];
  if (is_pairs) {
    const Node *a = f.made_by(first, "aten.unsqueeze.default"), *b = f.made_by(second, "aten.unsqueeze.default");
    if (a == nullptr || b == nullptr || f.size(first, -1).as_integer() != 1 || f.size(second, -1).as_integer() != 1)
      return {};
    first = AtenBuilder::operand(*a, 0);
    second = AtenBuilder::operand(*b, 0);
  }
  const Node* upper = f.made_by(f.made_by(first, "aten.neg.default"), 0, "aten.slice.Tensor");
  const Node* lower = f.made_by(second, "aten.slice.Tensor");
  if (upper == nullptr || lower == nullptr) return {};
  ValueId x = AtenBuilder::operand(*upper, 0);
  std::optional<int64_t> width = f.size(x, -1).as_integer();
  if (AtenBuilder::operand(*lower, 0) != x || !width || f.shape(x) != f.shape(tensor)) return {};
  bool fits =
      is_half(f, *upper, is_pairs ? 1 : *width / 2, is_pairs ? 2 : 1) && is_half(f, *lower, 0, is_pairs ? 2 : 1);
  return fits ? Swapped{x, is_pairs} : Swapped{};
}

/// Whether elements of the last dim are equal that belong together: both halves, or each pair. So is what is computed
/// elementwise from cat(angles, angles), or from each angle twice.
bool repeats_angles(const AtenBuilder& f, ValueId tensor, bool pairs) {
  constexpr std::string_view kElementwise[] = {"aten.to.dtype", "aten.cos.default", "aten.sin.default",
                                               "aten.mul.Scalar", "aten.unsqueeze.default"};
  constexpr int kSteps = 8;
  for (int i = 0; i < kSteps; ++i) {
    if (const Node* joined = f.made_by(tensor, "aten.cat.default")) {
      const auto* parts = joined->arguments[0].get_if<ValueList>();
      const auto* dim = joined->arguments[1].get_if<int64_t>();
      return !pairs && parts != nullptr && parts->size() == 2 && (*parts)[0] == (*parts)[1] && dim != nullptr &&
             *dim == static_cast<int64_t>(f.rank(tensor)) - 1;
    }
    if (const Node* flattened = f.made_by(tensor, "aten.reshape.default")) {
      const Node* expanded = f.made_by(flattened, 0, "aten.expand.default");
      const Node* inserted = f.made_by(expanded, 0, "aten.unsqueeze.default");
      if (!pairs || inserted == nullptr) return false;
      ValueId source = AtenBuilder::operand(*inserted, 0);
      Sizes twice = f.shape(source);
      twice.push_back(f.integer(2));
      return f.size(inserted->outputs[0], -1).as_integer() == 1 && f.shape(expanded->outputs[0]) == twice &&
             f.rank(tensor) == f.rank(source) &&
             f.size(tensor, -1) == f.symbols().mul(f.size(source, -1), f.integer(2));
    }
    const Node* node = nullptr;
    for (std::string_view op : kElementwise) {
      if (node == nullptr) node = f.made_by(tensor, op);
    }
    if (node == nullptr) return false;
    ValueId source = AtenBuilder::operand(*node, 0);
    if (f.size(source, -1) != f.size(tensor, -1)) return false;  // a new last dim
    tensor = source;
  }
  return false;
}

/// Factors without the dim of heads, which has size 1.
ValueId without_heads(AtenBuilder& f, ValueId factors, int64_t heads_dim) {
  const Node* inserted = f.made_by(factors, "aten.unsqueeze.default");
  const auto* dim = inserted == nullptr ? nullptr : inserted->arguments[1].get_if<int64_t>();
  return dim != nullptr && *dim == heads_dim ? AtenBuilder::operand(*inserted, 0) : f.squeeze(factors, heads_dim);
}

/// Which dim of x is that of heads: 1 before tokens, 2 after them; factors of `columns` have a 1 there. 0: they do not
/// fit.
int64_t heads_dim_of(const AtenBuilder& f, ValueId x, ValueId cos, ValueId sin, SymExpr columns) {
  if (f.rank(cos) != 4 || f.shape(cos) != f.shape(sin) || f.size(cos, 3) != columns) return 0;
  for (int64_t dim : {int64_t{1}, int64_t{2}}) {
    if (f.size(cos, dim).as_integer() == 1 && f.size(cos, 3 - dim) == f.size(x, 3 - dim) && f.size(x, dim).as_integer())
      return dim;
  }
  return 0;
}

/// x, of which the rule's node is turned. `cos` and `sin` have no dim of heads.
bool become_rotary(AtenBuilder& f, ValueId x, ValueId cos, ValueId sin, int64_t heads_dim, bool pairs) {
  int64_t heads = *f.size(x, heads_dim).as_integer();
  Sizes by_heads = f.shape(x), merged_shape = {f.size(x, 0), f.size(x, 1), f.symbols().mul(f.size(x, 2), f.size(x, 3))};
  ValueId merged = heads_dim == 1 ? merge_heads(f, x) : f.reshape(x, std::move(merged_shape));
  ValueId result =
      f.node(kRotarySchema, {{"x", merged}, {"cos", cos}, {"sin", sin}, {"heads", heads}, {"pairs", pairs}},
             f.dtype(merged), f.shape(merged));
  return f.replace(heads_dim == 1 ? split_heads(f, result, heads) : f.reshape(result, std::move(by_heads)));
}

/// Each angle's factor once, [batch or 1, tokens, width / 2].
ValueId factors_once(AtenBuilder& f, ValueId factors, int64_t heads_dim, bool pairs) {
  ValueId source = without_heads(f, factors, heads_dim);
  return f.slice(source, -1, 0, f.integer(*f.size(source, -1).as_integer() / 2), pairs ? 2 : 1);
}

/// x * cos + swapped(x) * sin.
bool recognise_rotary(AtenBuilder& f) {
  std::optional<double> alpha = f.number("alpha");
  if (!alpha || *alpha != 1 || f.result().shape.size() != 4) return false;
  for (auto [plain, turned] : {std::pair("self", "other"), std::pair("other", "self")}) {
    const Node *by_cos = f.made_by(f[plain], "aten.mul.Tensor"), *by_sin = f.made_by(f[turned], "aten.mul.Tensor");
    if (by_cos == nullptr || by_sin == nullptr) return false;
    for (size_t i : {size_t{0}, size_t{1}}) {
      auto [x, pairs] = find_swapped(f, AtenBuilder::operand(*by_sin, i));
      if (!x.is_valid()) continue;
      size_t own = AtenBuilder::operand(*by_cos, 0) == x ? 0 : 1;
      if (AtenBuilder::operand(*by_cos, own) != x) continue;
      if (f.shape(x) != f.result().shape || f.dtype(x) != f.result().dtype) return false;
      ValueId sin = AtenBuilder::operand(*by_sin, 1 - i), cos = AtenBuilder::operand(*by_cos, 1 - own);
      int64_t heads_dim = heads_dim_of(f, x, cos, sin, f.size(x, 3));
      if (heads_dim == 0 || !repeats_angles(f, cos, pairs) || !repeats_angles(f, sin, pairs)) return false;
      cos = factors_once(f, cos, heads_dim, pairs);
      sin = factors_once(f, sin, heads_dim, pairs);
      return become_rotary(f, x, cos, sin, heads_dim, pairs);
    }
  }
  return false;
}

/// The tensor whose first half is `a` and whose second one is `b`; invalid: they are something else.
ValueId find_halved(const AtenBuilder& f, ValueId a, ValueId b) {
  if (const Node* split = f.made_by(a, "aten.split_with_sizes.default")) {
    ValueId x = AtenBuilder::operand(*split, 0);
    const auto* dim = split->arguments[2].get_if<int64_t>();
    bool fits = split->outputs.size() == 2 && split->outputs[0] == a && split->outputs[1] == b && dim != nullptr &&
                wrap_dim(*dim, f.rank(x)) == f.rank(x) - 1 && f.size(a, -1) == f.size(b, -1);
    return fits ? x : ValueId();
  }
  const Node *lower = f.made_by(a, "aten.slice.Tensor"), *upper = f.made_by(b, "aten.slice.Tensor");
  if (lower == nullptr || upper == nullptr || AtenBuilder::operand(*lower, 0) != AtenBuilder::operand(*upper, 0))
    return {};
  ValueId x = AtenBuilder::operand(*lower, 0);
  std::optional<int64_t> width = f.size(x, -1).as_integer();
  return width && is_half(f, *lower, 0, 1) && is_half(f, *upper, *width / 2, 1) ? x : ValueId();
}

bool is_product_of(const AtenBuilder& f, ValueId tensor, ValueId a, ValueId b) {
  const Node* product = f.made_by(tensor, "aten.mul.Tensor");
  if (product == nullptr) return false;
  ValueId first = AtenBuilder::operand(*product, 0), second = AtenBuilder::operand(*product, 1);
  return (first == a && second == b) || (first == b && second == a);
}

/// cat(a * cos - b * sin, b * cos + a * sin) of the halves a and b, with each factor once.
bool recognise_halves(AtenBuilder& f) {
  const ValueList& parts = f.tensors("tensors");
  if (parts.size() != 2 || f.integer("dim") != 3 || f.rank(parts[0]) != 4) return false;
  const Node *difference = f.made_by(parts[0], "aten.sub.Tensor"), *sum = f.made_by(parts[1], "aten.add.Tensor");
  if (!AtenBuilder::adds_as_is(difference) || !AtenBuilder::adds_as_is(sum)) return false;
  const Node *by_cos = f.made_by(difference, 0, "aten.mul.Tensor"),
             *by_sin = f.made_by(difference, 1, "aten.mul.Tensor");
  if (by_cos == nullptr || by_sin == nullptr) return false;
  ValueId x, a, b, cos, sin;
  for (size_t i : {size_t{0}, size_t{1}, size_t{2}, size_t{3}}) {
    if (x.is_valid()) break;
    a = AtenBuilder::operand(*by_cos, i % 2);
    cos = AtenBuilder::operand(*by_cos, 1 - i % 2);
    b = AtenBuilder::operand(*by_sin, i / 2);
    sin = AtenBuilder::operand(*by_sin, 1 - i / 2);
    x = find_halved(f, a, b);
  }
  if (!x.is_valid()) return false;
  ValueId first = AtenBuilder::operand(*sum, 0), second = AtenBuilder::operand(*sum, 1);
  bool is_turned = (is_product_of(f, first, b, cos) && is_product_of(f, second, a, sin)) ||
                   (is_product_of(f, first, a, sin) && is_product_of(f, second, b, cos));
  int64_t heads_dim = heads_dim_of(f, x, cos, sin, f.size(a, 3));
  if (!is_turned || heads_dim == 0 || f.shape(x) != f.result().shape || f.dtype(x) != f.result().dtype) return false;
  cos = without_heads(f, cos, heads_dim);
  sin = without_heads(f, sin, heads_dim);
  return become_rotary(f, x, cos, sin, heads_dim, false);
}

/// Heads of which only the first elements were turned: cat(turned, rest).
bool recognise_partial(AtenBuilder& f) {
  const ValueList& parts = f.tensors("tensors");
  if (parts.size() != 2 || f.integer("dim") != 3 || f.rank(parts[0]) != 4) return false;
  const Node* rest = f.made_by(parts[1], "aten.slice.Tensor");
  // Heads come before tokens where both were exchanged before and after.
  const Node *permuted = f.made_by(parts[0], "aten.permute.default"), *moved = nullptr;
  const Node* split = permuted != nullptr ? f.made_by(permuted, 0, "aten.reshape.default")
                                          : f.made_by(parts[0], "aten.reshape.default");
  const Node* rotary = f.made_by(split, 0, "argosy.rotary.default");
  const Node* before = f.made_by(rotary, 0, "aten.reshape.default");
  if (permuted != nullptr) before = moved = f.made_by(before, 0, "aten.permute.default");
  const Node* first = f.made_by(before, 0, "aten.slice.Tensor");
  if (rest == nullptr || first == nullptr) return false;
  ValueId x = AtenBuilder::operand(*rest, 0);
  std::optional<int64_t> count = f.size(parts[0], -1).as_integer(), width = f.size(x, -1).as_integer();
  bool fits = AtenBuilder::operand(*first, 0) == x && f.rank(x) == 4 && count && width && starts_at(f, *first, 0) &&
              starts_at(f, *rest, *count) && f.shape(first->outputs[0]) == f.shape(parts[0]) &&
              f.size(parts[1], 3).as_integer() == *width - *count && f.shape(x) == f.result().shape;
  if (!fits || (moved != nullptr && numbers(moved->arguments[1]) != kHeadsAndTokens)) return false;
  const int64_t heads_dim = moved != nullptr ? 1 : 2;
  if (f.size(x, heads_dim).as_integer() != *rotary->arguments[3].get_if<int64_t>()) return false;
  ValueId cos = AtenBuilder::operand(*rotary, 1), sin = AtenBuilder::operand(*rotary, 2);
  return become_rotary(f, x, cos, sin, heads_dim, *rotary->arguments[4].get_if<bool>());
}

constexpr RewriteRule kRotaryRules[] = {
    {.op = "argosy.rotary.default", .name = "decompose-rotary", .apply = write<decompose_rotary>}};
constexpr RewriteRule kRotaryRecogniser[] = {
    {.op = "aten.add.Tensor", .name = "recognise-rotary", .apply = write<recognise_rotary>},
    {.op = "aten.cat.default", .name = "recognise-rotary-of-halves", .apply = write<recognise_halves>},
    {.op = "aten.cat.default", .name = "recognise-partial-rotary", .apply = write<recognise_partial>},
};

constexpr Structure kRotary = {.schema = kRotarySchema, .plain = kRotaryRules, .portable = kRotaryRules};

}  // namespace

const Structure& rotary_structure() { return kRotary; }

std::span<const RewriteRule> rotary_rules() { return kRotaryRecogniser; }

}  // namespace argosy
