#include "backends/onnx/fold.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "backends/onnx/kernel_types.h"
#include "base/check.h"
#include "tensor/cast.h"

namespace argosy::onnx {
namespace {

using Extents = std::vector<int64_t>;
using Inputs = std::span<const Constant* const>;

int64_t count_of(const Extents& shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    count *= size;
    if (count > kMaxFoldedElements) return kMaxFoldedElements + 1;
  }
  return count;
}

bool is_folded_type(DType dtype) {
  return dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kBool || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

double rounded(double value, DType dtype) {
  return dtype == DType::kF32 ? static_cast<double>(static_cast<float>(value)) : value;
}
int64_t wrapped(int64_t value, DType dtype) { return dtype == DType::kI32 ? static_cast<int32_t>(value) : value; }

template <class T>
const T* attribute(const Node& node, std::string_view name) {
  for (const Attribute& each : node.attributes) {
    if (each.name == name) return std::get_if<T>(&each.value);
  }
  return nullptr;
}

int64_t int_attribute(const Node& node, std::string_view name, int64_t otherwise) {
  const int64_t* value = attribute<int64_t>(node, name);
  return value == nullptr ? otherwise : *value;
}

/// The elements of an int or float constant at row-major positions.
Constant gathered(const Constant& from, Extents shape, const std::vector<size_t>& positions) {
  Constant result{from.dtype, std::move(shape), {}, {}};
  for (size_t position : positions) {
    if (from.is_float()) {
      result.reals.push_back(from.reals[position]);
    } else {
      result.ints.push_back(from.ints[position]);
    }
  }
  return result;
}

std::optional<Extents> broadcast(const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()), 1);
  for (const Extents* shape : {&a, &b}) {
    for (size_t i = 0; i < shape->size(); ++i) {
      int64_t& target = result[result.size() - shape->size() + i];
      if (target == 1) target = (*shape)[i];
      if ((*shape)[i] != 1 && (*shape)[i] != target) return std::nullopt;
    }
  }
  return result;
}

Constant expanded(const Constant& from, const Extents& shape) {
  std::vector<size_t> positions;
  int64_t count = count_of(shape);
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t rest = flat, position = 0, stride = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      size_t dim = shape.size() - 1 - i;
      int64_t at = rest % shape[dim];
      rest /= shape[dim];
      if (i < from.shape.size()) {
        int64_t own = from.shape[from.shape.size() - 1 - i];
        position += (own == 1 ? 0 : at) * stride;
        stride *= own;
      }
    }
    positions.push_back(static_cast<size_t>(position));
  }
  return gathered(from, shape, positions);
}

/// a op b for integers; nullopt where it is not defined.
std::optional<int64_t> integer_result(std::string_view op, int64_t a, int64_t b) {
  int64_t result = 0;
  if (op == "Add") return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (op == "Sub") return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (op == "Mul") return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (op == "Div" || op == "Mod") {
    if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
    if (op == "Div") return a / b;
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "And") return a & b;
  if (op == "Or") return a | b;
  return std::nullopt;
}

std::optional<double> real_result(std::string_view op, double a, double b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  return std::nullopt;
}

template <class T>
std::optional<bool> comparison(std::string_view op, T a, T b) {
  if (op == "Equal") return a == b;
  if (op == "Less") return a < b;
  if (op == "LessOrEqual") return a <= b;
  if (op == "Greater") return a > b;
  if (op == "GreaterOrEqual") return a >= b;
  return std::nullopt;
}

std::optional<Constant> fold_binary(const Node& node, Inputs inputs) {
  if (int_attribute(node, "fmod", 0) != 0) return std::nullopt;
  auto shape = broadcast(inputs[0]->shape, inputs[1]->shape);
  if (!shape || count_of(*shape) > kMaxFoldedElements || inputs[0]->dtype != inputs[1]->dtype) return std::nullopt;
  Constant a = expanded(*inputs[0], *shape), b = expanded(*inputs[1], *shape);
  Constant result{a.dtype, *shape, {}, {}};
  for (size_t i = 0; i < a.size(); ++i) {
    auto truth = a.is_float() ? comparison(node.op, a.reals[i], b.reals[i]) : comparison(node.op, a.ints[i], b.ints[i]);
    if (truth) {
      result.dtype = DType::kBool;
      result.ints.push_back(*truth ? 1 : 0);
    } else if (a.is_float()) {
      auto value = real_result(node.op, a.reals[i], b.reals[i]);
      if (!value) return std::nullopt;
      result.reals.push_back(rounded(*value, a.dtype));
    } else {
      auto value = integer_result(node.op, a.ints[i], b.ints[i]);
      if (!value) return std::nullopt;
      result.ints.push_back(wrapped(*value, a.dtype));
    }
  }
  return result;
}

std::optional<Constant> fold_cast(const Node& node, Inputs inputs) {
  const Constant& from = *inputs[0];
  int64_t to = int_attribute(node, "to", 0);
  for (DType dtype : {DType::kI64, DType::kI32, DType::kBool, DType::kF32, DType::kF64}) {
    if (onnx_type(dtype) != to) continue;
    Constant result{dtype, from.shape, {}, {}};
    for (size_t i = 0; i < from.size(); ++i) {
      double real = from.is_float() ? from.reals[i] : static_cast<double>(from.ints[i]);
      if (result.is_float()) {
        result.reals.push_back(rounded(real, dtype));
      } else if (dtype == DType::kBool) {
        result.ints.push_back(real != 0 ? 1 : 0);
      } else {
        if (from.is_float() && !(std::abs(real) < 2147483648.0)) return std::nullopt;
        result.ints.push_back(wrapped(from.is_float() ? static_cast<int64_t>(real) : from.ints[i], dtype));
      }
    }
    return result;
  }
  return std::nullopt;
}

std::optional<Constant> fold_concat(const Node& node, Inputs inputs) {
  // Vectors only: shapes.
  Constant result{inputs[0]->dtype, {0}, {}, {}};
  for (const Constant* part : inputs) {
    if (part->shape.size() != 1 || part->dtype != result.dtype) return std::nullopt;
    result.ints.insert(result.ints.end(), part->ints.begin(), part->ints.end());
    result.reals.insert(result.reals.end(), part->reals.begin(), part->reals.end());
    result.shape[0] += part->shape[0];
  }
  if (int_attribute(node, "axis", 0) != 0 || result.shape[0] > kMaxFoldedElements) return std::nullopt;
  return result;
}

/// The same elements under another shape.
std::optional<Constant> fold_shape_change(const Node& node, Inputs inputs) {
  Constant result = *inputs[0];
  if (inputs.size() < 2 || inputs[1] == nullptr) return std::nullopt;
  const std::vector<int64_t>& numbers = inputs[1]->ints;
  if (node.op == "Reshape") {
    if (std::ranges::any_of(numbers, [](int64_t n) { return n <= 0; })) return std::nullopt;
    result.shape = numbers;
  } else if (node.op == "Unsqueeze") {
    auto rank = static_cast<int64_t>(result.shape.size() + numbers.size());
    std::vector<bool> is_new(static_cast<size_t>(rank));
    for (int64_t axis : numbers) is_new[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
    Extents shape;
    size_t old = 0;
    for (bool fresh : is_new) shape.push_back(fresh ? 1 : result.shape[old++]);
    result.shape = shape;
  } else {
    auto rank = static_cast<int64_t>(result.shape.size());
    Extents shape;
    for (int64_t dim = 0; dim < rank; ++dim) {
      bool is_dropped =
          std::ranges::any_of(numbers, [&](int64_t axis) { return (axis < 0 ? axis + rank : axis) == dim; });
      if (!is_dropped) shape.push_back(result.shape[static_cast<size_t>(dim)]);
    }
    result.shape = shape;
  }
  return count_of(result.shape) == static_cast<int64_t>(result.size()) ? std::optional(result) : std::nullopt;
}

std::optional<Constant> fold_gather(const Node& node, Inputs inputs) {
  const Constant &data = *inputs[0], &indices = *inputs[1];
  if (data.shape.size() != 1 || int_attribute(node, "axis", 0) != 0) return std::nullopt;
  std::vector<size_t> positions;
  for (int64_t index : indices.ints) {
    if (index < 0) index += data.shape[0];
    if (index < 0 || index >= data.shape[0]) return std::nullopt;
    positions.push_back(static_cast<size_t>(index));
  }
  return gathered(data, indices.shape, positions);
}

std::optional<Constant> fold_range(const Node&, Inputs inputs) {
  if (inputs[0]->dtype != DType::kI64 || inputs[2]->ints[0] == 0) return std::nullopt;
  int64_t start = inputs[0]->ints[0], end = inputs[1]->ints[0], step = inputs[2]->ints[0];
  Constant result{DType::kI64, {0}, {}, {}};
  for (int64_t value = start; step > 0 ? value < end : value > end; value += step) {
    if (static_cast<int64_t>(result.ints.size()) >= kMaxFoldedElements) return std::nullopt;
    result.ints.push_back(value);
  }
  result.shape[0] = static_cast<int64_t>(result.ints.size());
  return result;
}

std::optional<Constant> fold_where(const Node&, Inputs inputs) {
  auto inner = broadcast(inputs[1]->shape, inputs[2]->shape);
  auto shape = inner ? broadcast(inputs[0]->shape, *inner) : std::nullopt;
  if (!shape || count_of(*shape) > kMaxFoldedElements || inputs[1]->dtype != inputs[2]->dtype) return std::nullopt;
  Constant condition = expanded(*inputs[0], *shape), yes = expanded(*inputs[1], *shape),
           no = expanded(*inputs[2], *shape);
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition.ints[i] != 0) continue;
    if (yes.is_float()) {
      yes.reals[i] = no.reals[i];
    } else {
      yes.ints[i] = no.ints[i];
    }
  }
  return yes;
}

std::optional<Constant> fold_fill(const Node& node, Inputs inputs) {
  const TensorSourcePtr* value = attribute<TensorSourcePtr>(node, "value");
  if (value == nullptr || count_of(inputs[0]->ints) > kMaxFoldedElements) return std::nullopt;
  auto element = read_constant(**value);
  if (!element) return std::nullopt;
  element->shape = {};
  return expanded(*element, inputs[0]->ints);
}

std::optional<Constant> fold_unary(const Node& node, Inputs inputs) {
  Constant result = *inputs[0];
  if (node.op == "Not") {
    for (int64_t& value : result.ints) value = value == 0 ? 1 : 0;
    return result;
  }
  if (!result.is_float()) {
    if (node.op != "Neg") return std::nullopt;
    for (int64_t& value : result.ints) value = wrapped(-value, result.dtype);
    return result;
  }
  for (double& value : result.reals) {
    if (node.op == "Neg") value = -value;
    if (node.op == "Sqrt") value = rounded(std::sqrt(value), result.dtype);
    if (node.op == "Floor") value = std::floor(value);
    if (node.op == "Ceil") value = std::ceil(value);
  }
  return result;
}

std::optional<Constant> fold_expand(const Node&, Inputs inputs) {
  auto shape = broadcast(inputs[0]->shape, inputs[1]->ints);
  if (!shape || count_of(*shape) > kMaxFoldedElements) return std::nullopt;
  return expanded(*inputs[0], *shape);
}

struct Folder {
  std::string_view op;
  size_t inputs;  // at least
  std::optional<Constant> (*fold)(const Node&, Inputs);
};

constexpr Folder kFolders[] = {
    {"Add", 2, fold_binary},
    {"Sub", 2, fold_binary},
    {"Mul", 2, fold_binary},
    {"Div", 2, fold_binary},
    {"Mod", 2, fold_binary},
    {"Min", 2, fold_binary},
    {"Max", 2, fold_binary},
    {"And", 2, fold_binary},
    {"Or", 2, fold_binary},
    {"Equal", 2, fold_binary},
    {"Less", 2, fold_binary},
    {"LessOrEqual", 2, fold_binary},
    {"Greater", 2, fold_binary},
    {"GreaterOrEqual", 2, fold_binary},
    {"Cast", 1, fold_cast},
    {"Concat", 1, fold_concat},
    {"Reshape", 2, fold_shape_change},
    {"Squeeze", 2, fold_shape_change},
    {"Unsqueeze", 2, fold_shape_change},
    {"Gather", 2, fold_gather},
    {"Range", 3, fold_range},
    {"Where", 3, fold_where},
    {"ConstantOfShape", 1, fold_fill},
    {"Not", 1, fold_unary},
    {"Neg", 1, fold_unary},
    {"Sqrt", 1, fold_unary},
    {"Floor", 1, fold_unary},
    {"Ceil", 1, fold_unary},
    {"Expand", 2, fold_expand},
};

}  // namespace

std::optional<Constant> read_constant(const TensorSource& source) {
  if (!is_folded_type(source.dtype()) || source.elements() > kMaxFoldedElements) return std::nullopt;
  std::vector<std::byte> bytes;
  Status status = source.stream_to(
      [&](std::span<const std::byte> block) -> Status {
        bytes.insert(bytes.end(), block.begin(), block.end());
        return {};
      },
      size_t{64} << 10);
  if (!status) return std::nullopt;
  Constant result{source.dtype(), Extents(source.shape().begin(), source.shape().end()), {}, {}};
  auto count = static_cast<size_t>(source.elements());
  if (result.is_float()) {
    result.reals.resize(count);
    std::span<std::byte> out = std::as_writable_bytes(std::span(result.reals));
    if (result.dtype == DType::kF64) {
      std::ranges::copy(bytes, out.begin());
    } else {
      cast_elements(result.dtype, bytes, DType::kF64, out);
    }
  } else {
    result.ints.resize(count);
    std::span<std::byte> out = std::as_writable_bytes(std::span(result.ints));
    if (result.dtype == DType::kI64) {
      std::ranges::copy(bytes, out.begin());
    } else {
      cast_elements(result.dtype, bytes, DType::kI64, out);
    }
  }
  return result;
}

TensorSourcePtr to_source(const Constant& constant) {
  std::vector<std::byte> bytes(constant.size() * static_cast<size_t>(bits_of(constant.dtype)) / 8);
  for (size_t i = 0; i < constant.size(); ++i) {
    size_t width = static_cast<size_t>(bits_of(constant.dtype)) / 8;
    std::byte* out = bytes.data() + i * width;
    if (constant.dtype == DType::kF32) {
      auto value = static_cast<float>(constant.reals[i]);
      std::memcpy(out, &value, width);
    } else if (constant.dtype == DType::kF64) {
      std::memcpy(out, &constant.reals[i], width);
    } else {
      std::memcpy(out, &constant.ints[i], width);
    }
  }
  auto source = literal(std::move(bytes), constant.dtype, constant.shape);
  ARGOSY_CHECK(source, "a folded constant of the wrong size");
  return *std::move(source);
}

std::optional<Constant> fold(const Node& node, std::span<const Constant* const> inputs) {
  if (!node.domain.empty() || node.outputs.size() != 1) return std::nullopt;
  const auto* found = std::ranges::find(kFolders, node.op, &Folder::op);
  if (found == std::end(kFolders) || inputs.size() < found->inputs) return std::nullopt;
  if (std::ranges::any_of(inputs, [](const Constant* input) { return input == nullptr; })) return std::nullopt;
  std::optional<Constant> result = found->fold(node, inputs);
  if (result && static_cast<int64_t>(result->size()) > kMaxFoldedElements) return std::nullopt;
  return result;
}

}  // namespace argosy::onnx
