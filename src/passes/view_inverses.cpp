#include "passes/view_inverses.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "passes/aten_schemas.h"
#include "passes/match.h"

namespace argosy {
namespace {

constexpr std::string_view kSelectScatter =
    "aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor";
constexpr std::string_view kSliceScatter =
    "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
    "Tensor";
constexpr std::string_view kDiagonalScatter =
    "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor";
constexpr std::string_view kViewAsReal = "aten::view_as_real(Tensor(a) self) -> Tensor(a)";
constexpr std::string_view kViewAsComplex = "aten::view_as_complex(Tensor(a) self) -> Tensor(a)";

/// The parent's type; strides are those of a new tensor.
TensorType result_type(Emitter& emit, const ViewWrite& write) {
  TensorType type = emit.type(write.parent);
  type.strides.clear();
  return type;
}

const Argument& named(const ViewWrite& write, std::string_view name) {
  return write.arguments[write.schema.find_argument(name).value()];
}

Result<ValueId> from_select(Emitter& emit, const ViewWrite& write) {
  return emit(
      kSelectScatter,
      {{"self", write.parent}, {"src", write.written}, {"dim", named(write, "dim")}, {"index", named(write, "index")}},
      result_type(emit, write));
}

Result<ValueId> from_slice(Emitter& emit, const ViewWrite& write) {
  return emit(kSliceScatter,
              {{"self", write.parent},
               {"src", write.written},
               {"dim", named(write, "dim")},
               {"start", named(write, "start")},
               {"end", named(write, "end")},
               {"step", named(write, "step")}},
              result_type(emit, write));
}

Result<ValueId> from_diagonal(Emitter& emit, const ViewWrite& write) {
  return emit(kDiagonalScatter,
              {{"self", write.parent},
               {"src", write.written},
               {"offset", named(write, "offset")},
               {"dim1", named(write, "dim1")},
               {"dim2", named(write, "dim2")}},
              result_type(emit, write));
}

Result<ValueId> from_unbind(Emitter& emit, const ViewWrite& write) {
  return emit(kSelectScatter,
              {{"self", write.parent},
               {"src", write.written},
               {"dim", named(write, "dim")},
               {"index", static_cast<int64_t>(write.output)}},
              result_type(emit, write));
}

Result<ValueId> from_narrow(Emitter& emit, const ViewWrite& write) {
  const int64_t* start = named(write, "start").get_if<int64_t>();
  const int64_t* length = named(write, "length").get_if<int64_t>();
  if (start == nullptr || length == nullptr) {
    return fail(ErrorCode::kUnsupportedFeature, "a write to a part whose place is computed");
  }
  Argument end = *start < 0 && *start + *length == 0 ? Argument(None{}) : Argument(*start + *length);
  return emit(kSliceScatter,
              {{"self", write.parent},
               {"src", write.written},
               {"dim", named(write, "dim")},
               {"start", *start},
               {"end", std::move(end)}},
              result_type(emit, write));
}

/// One of the parts that a tensor was split into: where it begins is the sum of those before it.
Result<ValueId> from_split(Emitter& emit, const ViewWrite& write) {
  const int64_t* dim = named(write, "dim").get_if<int64_t>();
  const size_t rank = emit.type(write.parent).shape.size();
  std::optional<size_t> axis = dim == nullptr ? std::nullopt : wrap_dim(*dim, rank);
  if (!axis) return fail(ErrorCode::kUnsupportedFeature, "a write to a part along a dim that is not known");
  int64_t start = 0, end = 0;
  for (size_t i = 0; i <= write.output; ++i) {
    if (write.outputs[i].shape.size() != rank) {
      return fail(ErrorCode::kInvalidInput, "a part has other dims than the whole");
    }
    auto size = write.outputs[i].shape[*axis].as_integer();
    if (!size) return fail(ErrorCode::kUnsupportedFeature, "a write to a part whose place is not known");
    start = end;
    end += *size;
  }
  return emit(kSliceScatter,
              {{"self", write.parent}, {"src", write.written}, {"dim", *dim}, {"start", start}, {"end", end}},
              result_type(emit, write));
}

Result<ValueId> from_reshape(Emitter& emit, const ViewWrite& write) {
  ARGOSY_TRY(IntList sizes, sizes_of(emit, write.parent));
  return emit(aten::kReshape, {{"self", write.written}, {"shape", std::move(sizes)}}, result_type(emit, write));
}

/// Ops that swap two dims, or reverse all: once more gives back what was.
Result<ValueId> from_swap(Emitter& emit, const ViewWrite& write) {
  std::vector<Argument> arguments(write.arguments.begin(), write.arguments.end());
  arguments[0] = write.written;
  return emit.positional(write.schema.text, std::move(arguments), result_type(emit, write));
}

/// movedim: the two lists of dims change places.
Result<ValueId> from_move(Emitter& emit, const ViewWrite& write) {
  return emit.positional(write.schema.text, {Argument(write.written), write.arguments[2], write.arguments[1]},
                         result_type(emit, write));
}

Result<ValueId> from_permute(Emitter& emit, const ViewWrite& write) {
  const auto& dims = std::get<IntList>(named(write, "dims").variant());
  IntList inverse(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t* dim = std::get_if<int64_t>(&dims[i]);
    if (dim == nullptr) return fail(ErrorCode::kUnsupportedFeature, "an order of dims that is computed");
    size_t from = static_cast<size_t>(*dim < 0 ? *dim + static_cast<int64_t>(dims.size()) : *dim);
    if (from >= dims.size()) return fail(ErrorCode::kInvalidInput, format("there is no dim {}", *dim));
    inverse[from] = static_cast<int64_t>(i);
  }
  return emit(aten::kPermute, {{"self", write.written}, {"dims", std::move(inverse)}}, result_type(emit, write));
}

Result<ValueId> from_complex(Emitter& emit, const ViewWrite& write) {
  return emit(kViewAsReal, {{"self", write.written}}, result_type(emit, write));
}

Result<ValueId> from_real(Emitter& emit, const ViewWrite& write) {
  return emit(kViewAsComplex, {{"self", write.written}}, result_type(emit, write));
}

struct Row {
  std::string_view op;  // without namespace; with the overload where only that one is meant
  Result<ValueId> (*emit)(Emitter&, const ViewWrite&);
};

// In alphabetical order. What is not here has no inverse (expand, as_strided, unfold, bit casts).
constexpr Row kRows[] = {
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

Result<ValueId> emit_parent(Emitter& emit, const ViewWrite& write) {
  std::string_view name = without_namespace(write.schema);
  std::string_view base = name.substr(0, name.find('.'));
  for (const Row& row : kRows) {
    if (row.op == name || row.op == base) return row.emit(emit, write);
  }
  return fail(ErrorCode::kUnsupportedFeature, format("a write through {}, which has no inverse", write.schema.name),
              "have the model's code write to a copy (clone) instead");
}

bool is_identity(const OpSchema& schema) {
  std::string_view name = without_namespace(schema);
  return std::ranges::find(kIdentities, name.substr(0, name.find('.'))) != std::end(kIdentities);
}

}  // namespace argosy
