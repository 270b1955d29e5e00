#include "backends/executorch/constant_method.h"

namespace argosy::executorch {

Method constant_method(const ConstantMethod& constant) {
  Method method;
  method.name = constant.name;
  for (const auto& value : constant.values) {
    method.outputs.push_back(static_cast<ValueIndex>(method.values.size()));
    method.output_names.emplace_back();
    std::visit([&](const auto& each) { method.values.emplace_back(each); }, value);
  }
  return method;
}

}  // namespace argosy::executorch
