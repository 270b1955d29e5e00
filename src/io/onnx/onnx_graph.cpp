#include "io/onnx/onnx_graph.h"

namespace argosy {

int64_t OnnxNode::integer(std::string_view attribute, int64_t otherwise) const {
  for (const auto& [key, value] : integers) {
    if (key == attribute) return value;
  }
  return otherwise;
}

uint32_t OnnxNumbers::op(std::string domain, std::string op_type) {
  auto [found, is_new] = ops_.try_emplace(domain + '\0' + op_type, static_cast<uint32_t>(graph_.ops.size()));
  if (is_new) graph_.ops.emplace_back(std::move(domain), std::move(op_type));
  return found->second;
}

uint32_t OnnxNumbers::add(const std::string& name) {
  graph_.values.push_back(name);
  return static_cast<uint32_t>(graph_.values.size() - 1);
}

uint32_t OnnxNumbers::read(const std::string& name) {
  if (name.empty()) return OnnxNode::kNothing;
  auto found = values_.find(name);
  return found != values_.end() ? found->second : values_.emplace(name, add(name)).first->second;
}

uint32_t OnnxNumbers::given(const std::string& name) {
  if (name.empty() || scopes_.empty()) return read(name);
  auto found = values_.find(name);
  hidden_.emplace_back(name, found == values_.end() ? OnnxNode::kNothing : found->second);
  return values_[name] = add(name);
}

void OnnxNumbers::leave_sub_graph() {
  while (hidden_.size() > scopes_.back()) {
    auto& [name, before] = hidden_.back();
    if (before == OnnxNode::kNothing)
      values_.erase(name);
    else
      values_[name] = before;
    hidden_.pop_back();
  }
  scopes_.pop_back();
}

}  // namespace argosy
