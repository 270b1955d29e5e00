#include "passes/view_inverses.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "passes/aten_schemas.h"

namespace argosy {
namespace {

/// The parent's type; strides are those of a new tensor.
TensorType result_type(const AtenBuilder& f, const ViewWrite& write) {
  return {f.dtype(write.parent), f.shape(write.parent), {}};
}

const Argument& named(const ViewWrite& write, std::string_view name) {
  return write.arguments[write.schema.find_argument(name).value()];
}

/// An op that writes a part of a tensor; `place` says which part.
ValueId scatter(AtenBuilder& f, const ViewWrite& write, std::string_view schema,
                std::vector<AtenBuilder::Named> place) {
  place.emplace_back("self", write.parent);
  place.emplace_back("src", write.written);
  return f.value(schema, std::move(place), result_type(f, write));
}

/// The same with arguments of the view.
ValueId scatter_like(AtenBuilder& f, const ViewWrite& write, std::string_view schema,
                     std::initializer_list<std::string_view> names) {
  std::vector<AtenBuilder::Named> place;
  for (std::string_view name : names) place.emplace_back(name, named(write, name));
  return scatter(f, write, schema, std::move(place));
}

ValueId from_select(AtenBuilder& f, const ViewWrite& write) {
  return scatter_like(f, write, aten::kSelectScatter, {"dim", "index"});
}

ValueId from_slice(AtenBuilder& f, const ViewWrite& write) {
  return scatter_like(f, write, aten::kSliceScatter, {"dim", "start", "end", "step"});
}

ValueId from_diagonal(AtenBuilder& f, const ViewWrite& write) {
  return scatter_like(f, write, aten::kDiagonalScatter, {"offset", "dim1", "dim2"});
}

ValueId from_unbind(AtenBuilder& f, const ViewWrite& write) {
  return scatter(f, write, aten::kSelectScatter,
                 {{"dim", named(write, "dim")}, {"index", static_cast<int64_t>(write.output)}});
}

ValueId from_narrow(AtenBuilder& f, const ViewWrite& write) {
  const int64_t* start = named(write, "start").get_if<int64_t>();
  const int64_t* length = named(write, "length").get_if<int64_t>();
  if (start == nullptr || length == nullptr) f.refuse("a write to a part whose place is computed");
  Argument end = *start < 0 && *start + *length == 0 ? Argument(None{}) : Argument(*start + *length);
  return scatter(f, write, aten::kSliceScatter,
                 {{"dim", named(write, "dim")}, {"start", *start}, {"end", std::move(end)}});
}

/// One of the parts that a tensor was split into: where it begins is the sum of those before it.
ValueId from_split(AtenBuilder& f, const ViewWrite& write) {
  const int64_t* dim = named(write, "dim").get_if<int64_t>();
  size_t rank = f.rank(write.parent);
  std::optional<size_t> axis = dim == nullptr ? std::nullopt : wrap_dim(*dim, rank);
  if (!axis) f.refuse("a write to a part along a dim that is not known");
  int64_t start = 0, end = 0;
  for (size_t i = 0; i <= write.output; ++i) {
    if (write.outputs[i].shape.size() != rank) f.refuse("a part has other dims than the whole");
    auto size = write.outputs[i].shape[*axis].as_integer();
    if (!size) f.refuse("a write to a part whose place is not known");
    start = end;
    end += *size;
  }
  return scatter(f, write, aten::kSliceScatter, {{"dim", *dim}, {"start", start}, {"end", end}});
}

ValueId from_reshape(AtenBuilder& f, const ViewWrite& write) {
  return f.value(aten::kReshape, {{"self", write.written}, {"shape", f.items(write.parent)}}, result_type(f, write));
}

/// Ops that swap two dims, or reverse all: they are their own inverse.
ValueId from_swap(AtenBuilder& f, const ViewWrite& write) {
  std::vector<Argument> arguments(write.arguments.begin(), write.arguments.end());
  arguments[0] = write.written;
  return f.positional(write.schema.text, std::move(arguments), result_type(f, write));
}

/// movedim: the two lists of dims change places.
ValueId from_move(AtenBuilder& f, const ViewWrite& write) {
  return f.positional(write.schema.text, {Argument(write.written), write.arguments[2], write.arguments[1]},
                      result_type(f, write));
}

ValueId from_permute(AtenBuilder& f, const ViewWrite& write) {
  std::optional<std::vector<int64_t>> dims = numbers(named(write, "dims"));
  if (!dims) f.refuse("an order of dims that is computed");
  IntList inverse(dims->size());
  for (size_t i = 0; i < dims->size(); ++i) {
    std::optional<size_t> from = wrap_dim((*dims)[i], dims->size());
    if (!from) f.refuse(format("there is no dim {}", (*dims)[i]));
    inverse[*from] = static_cast<int64_t>(i);
  }
  return f.value(aten::kPermute, {{"self", write.written}, {"dims", std::move(inverse)}}, result_type(f, write));
}

ValueId from_complex(AtenBuilder& f, const ViewWrite& write) {
  return f.value(aten::kViewAsReal, {{"self", write.written}}, result_type(f, write));
}

ValueId from_real(AtenBuilder& f, const ViewWrite& write) {
  return f.value(aten::kViewAsComplex, {{"self", write.written}}, result_type(f, write));
}

struct ViewRow {
  std::string_view op;  // without namespace; with the overload where only that one is meant
  ValueId (*parent_after)(AtenBuilder&, const ViewWrite&);
};

// In alphabetical order. What is not here has no inverse (expand, as_strided, unfold, bit casts).
constexpr ViewRow kViews[] = {
    {"_unsafe_view", from_reshape},  {"atleast_1d", from_reshape},
    {"atleast_2d", from_reshape},    {"atleast_3d", from_reshape},
    {"chunk", from_split},           {"diagonal", from_diagonal},
    {"flatten", from_reshape},       {"mT", from_swap},
    {"moveaxis", from_move},         {"movedim", from_move},
    {"narrow.default", from_narrow}, {"numpy_T", from_swap},
    {"permute", from_permute},       {"ravel", from_reshape},
    {"reshape", from_reshape},       {"reshape_as", from_reshape},
    {"select.int", from_select},     {"slice.Tensor", from_slice},
    {"split", from_split},           {"split_with_sizes", from_split},
    {"squeeze", from_reshape},       {"swapaxes", from_swap},
    {"swapdims", from_swap},         {"t", from_swap},
    {"tensor_split", from_split},    {"transpose.int", from_swap},
    {"unbind", from_unbind},         {"unflatten", from_reshape},
    {"unsqueeze", from_reshape},     {"view.default", from_reshape},
    {"view_as", from_reshape},       {"view_as_complex", from_complex},
    {"view_as_real", from_real},
};

constexpr std::string_view kIdentities[] = {
    "alias",           "alpha_dropout", "contiguous", "detach",  "dropout", "feature_alpha_dropout",
    "feature_dropout", "lift_fresh",    "to",         "type_as",
};

/// "aten.view.default" -> "view.default" and "view".
std::string_view without_namespace(const OpSchema& schema) {
  std::string_view name = schema.name;
  return name.starts_with("aten.") ? name.substr(5) : std::string_view();
}

}  // namespace

ValueId parent_after(AtenBuilder& f, const ViewWrite& write) {
  std::string_view name = without_namespace(write.schema);
  std::string_view base = name.substr(0, name.find('.'));
  for (const ViewRow& row : kViews) {
    if (row.op == name || row.op == base) return row.parent_after(f, write);
  }
  f.refuse(format("a write through {}, which has no inverse", write.schema.name),
           "have the model's code write to a copy (clone) instead");
}

bool is_identity(const OpSchema& schema) {
  std::string_view name = without_namespace(schema);
  return std::ranges::find(kIdentities, name.substr(0, name.find('.'))) != std::end(kIdentities);
}

}  // namespace argosy
