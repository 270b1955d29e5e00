#include "backends/executorch/bind_arguments.h"

#include <algorithm>

#include "base/text.h"

namespace argosy::executorch {
namespace {

// Kernels with a dtype argument, in which they compute or to which they cast.
constexpr std::string_view kTakesDType[] = {"aten::cumsum.out",
                                            "aten::mean.dtype_out",
                                            "aten::mean.out",
                                            "aten::prod.int_out",
                                            "aten::prod.out",
                                            "aten::sum.IntList_out",
                                            "quantized_decomposed::embedding_byte.dtype_out"};

bool is_passed(const SchemaArgument& argument, std::string_view kernel) {
  switch (argument.type.kind) {
    case SchemaKind::kLayout:
    case SchemaKind::kDevice:
    case SchemaKind::kGenerator: return false;
    case SchemaKind::kDType:
      return kernel.starts_with("quantized_decomposed::") ||
             std::ranges::find(kTakesDType, kernel) != std::end(kTakesDType);
    default: return argument.name != "pin_memory";
  }
}

class Binder {
 public:
  Binder(MethodValues& values, const std::function<ValueIndex(ValueId)>& index_of)
      : values_(values), index_of_(index_of) {}

  Result<ValueIndex> bind(const SchemaType& type, const Argument& argument) {
    if (argument.is<None>()) return values_.none();
    if (const ValueId* id = argument.get_if<ValueId>()) {
      if (type.is_list && type.kind == SchemaKind::kTensor)
        return values_.tensors({index_of_(*id)}, type.has_optional_items);
      return type.is_list ? values_.integers({index_of_(*id)}) : index_of_(*id);
    }
    if (const auto* list = argument.get_if<IntList>()) return integers(*list);
    if (const auto* list = argument.get_if<ValueList>()) return tensors(*list, type);
    if (const auto* list = argument.get_if<DoubleList>()) return values_.add(std::vector<double>(*list));
    if (const auto* list = argument.get_if<BoolList>()) return values_.add(std::vector<bool>(*list));
    if (const auto* number = argument.get_if<int64_t>()) {
      if (type.is_list) return values_.integers({values_.integer(*number)});
      bool is_real = type.kind == SchemaKind::kFloat || type.kind == SchemaKind::kSymFloat;
      return is_real ? values_.real(static_cast<double>(*number)) : values_.integer(*number);
    }
    if (const auto* number = argument.get_if<double>()) return values_.real(*number);
    if (const auto* flag = argument.get_if<bool>()) return values_.boolean(*flag);
    if (const auto* text = argument.get_if<std::string>()) return values_.text(*text);
    if (const auto* dtype = argument.get_if<DType>()) return values_.dtype(*dtype);
    // Of torch's memory formats only the order of the enumerators is used: contiguous is 0, channels_last 2.
    if (argument.is<MemoryFormat>()) return values_.integer(0);
    return fail(ErrorCode::kUnsupportedFeature, "kernels of ExecuTorch do not take such an argument");
  }

 private:
  ValueIndex integers(const IntList& list) {
    std::vector<ValueIndex> items;
    for (const IntItem& item : list) {
      const int64_t* number = std::get_if<int64_t>(&item);
      items.push_back(number != nullptr ? values_.integer(*number) : index_of_(std::get<ValueId>(item)));
    }
    return values_.integers(std::move(items));
  }

  /// A list of sizes that are all computed comes as values too.
  ValueIndex tensors(const ValueList& list, const SchemaType& type) {
    std::vector<ValueIndex> items;
    for (ValueId id : list) items.push_back(id.is_valid() ? index_of_(id) : kNoValue);
    if (type.kind == SchemaKind::kTensor) return values_.tensors(std::move(items), type.has_optional_items);
    return values_.integers(std::move(items));
  }

  MethodValues& values_;
  const std::function<ValueIndex(ValueId)>& index_of_;
};

}  // namespace

Result<std::vector<ValueIndex>> bind_arguments(const OpSchema& schema, const Node& node, std::string_view kernel,
                                               MethodValues& values,
                                               const std::function<ValueIndex(ValueId)>& index_of) {
  Binder binder(values, index_of);
  // aten::_to_copy.out(Tensor self, *, bool non_blocking=False, MemoryFormat? memory_format=None, Tensor(a!) out)
  if (kernel == "aten::_to_copy.out") {
    ARGOSY_TRY(ValueIndex self, binder.bind(schema.arguments[0].type, node.arguments[0]));
    return std::vector<ValueIndex>{self, values.boolean(false), values.none()};
  }
  // aten::_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out), and _log_softmax alike
  if (kernel == "aten::_softmax.out" || kernel == "aten::_log_softmax.out") {
    ARGOSY_TRY(ValueIndex self, binder.bind(schema.arguments[0].type, node.arguments[0]));
    ARGOSY_TRY(ValueIndex dim, binder.bind(schema.arguments[1].type, node.arguments[1]));
    return std::vector<ValueIndex>{self, dim, values.boolean(false)};
  }
  std::vector<ValueIndex> bound;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (!is_passed(schema.arguments[i], kernel)) continue;
    auto index = binder.bind(schema.arguments[i].type, node.arguments[i]);
    if (!index) {
      index.error().in(format("argument {}", schema.arguments[i].name));
      return fail(std::move(index.error()));
    }
    bound.push_back(*index);
  }
  return bound;
}

}  // namespace argosy::executorch
