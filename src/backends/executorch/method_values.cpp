#include "backends/executorch/method_values.h"

#include <bit>

namespace argosy::executorch {
namespace {

template <class Map, class Key>
ValueIndex interned(Map& map, const Key& key, MethodValues& values, Value value) {
  auto found = map.find(key);
  if (found != map.end()) return found->second;
  ValueIndex index = values.add(std::move(value));
  map.emplace(key, index);
  return index;
}

}  // namespace

ValueIndex MethodValues::add(Value value) {
  method_.values.push_back(std::move(value));
  return static_cast<ValueIndex>(method_.values.size() - 1);
}

ValueIndex MethodValues::none() {
  if (none_ == kNoValue) none_ = add(NoValue{});
  return none_;
}

ValueIndex MethodValues::integer(int64_t value) { return interned(integers_, value, *this, value); }
ValueIndex MethodValues::real(double value) { return interned(reals_, std::bit_cast<uint64_t>(value), *this, value); }
ValueIndex MethodValues::boolean(bool value) { return interned(booleans_, value, *this, value); }
ValueIndex MethodValues::text(std::string_view value) {
  return interned(texts_, std::string(value), *this, std::string(value));
}
ValueIndex MethodValues::integers(std::vector<ValueIndex> items) {
  return interned(lists_, items, *this, IntValues{items});
}
ValueIndex MethodValues::dtype(DType dtype) { return integer(scalar_type(dtype).value_or(-1)); }

void MethodValues::call(std::string_view kernel, std::vector<ValueIndex> arguments) {
  auto found = kernels_.find(kernel);
  if (found == kernels_.end()) {
    size_t dot = kernel.find('.');
    KernelName name{std::string(kernel.substr(0, dot)),
                    dot == std::string_view::npos ? "" : std::string(kernel.substr(dot + 1))};
    found = kernels_.emplace(std::string(kernel), static_cast<uint32_t>(method_.kernels.size())).first;
    method_.kernels.push_back(std::move(name));
  }
  add_instruction(KernelCall{found->second, std::move(arguments)});
}

ValueIndex MethodValues::root_of(ValueIndex index) const {
  while (method_.tensor(index).alias_of != kNoValue) index = method_.tensor(index).alias_of;
  return index;
}

std::optional<int8_t> scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kU8: return 0;
    case DType::kI8: return 1;
    case DType::kI16: return 2;
    case DType::kI32: return 3;
    case DType::kI64: return 4;
    case DType::kF16: return 5;
    case DType::kF32: return 6;
    case DType::kF64: return 7;
    case DType::kBool: return 11;
    case DType::kBF16: return 15;
    case DType::kF8E5M2: return 23;
    case DType::kF8E4M3FN: return 24;
    case DType::kF8E5M2FNUZ: return 25;
    case DType::kF8E4M3FNUZ: return 26;
    case DType::kU16: return 27;
    case DType::kU32: return 28;
    case DType::kU64: return 29;
    default: return std::nullopt;
  }
}

}  // namespace argosy::executorch
