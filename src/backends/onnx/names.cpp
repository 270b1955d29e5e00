#include "backends/onnx/names.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"

namespace argosy::onnx {
namespace {

/// Gives out unique names, in time that does not depend on how many share a stem.
class NameTable {
 public:
  bool reserve(const std::string& name) { return taken_.insert(name).second; }

  /// The name itself, else with the next number that is free.
  std::string unique(const std::string& wanted) { return reserve(wanted) ? wanted : numbered(wanted, 2); }

  /// The stem with the next number that is free, from `first` on.
  std::string numbered(const std::string& stem, uint64_t first) {
    uint64_t& next = next_.try_emplace(stem, first).first->second;
    while (true) {
      std::string name = format("{}_{}", stem, next++);
      if (reserve(name)) return name;
    }
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, uint64_t> next_;
};

class Namer {
 public:
  explicit Namer(Model& model) : model_(model), is_named_(model.values.size()) {}

  void run() {
    // Names that callers see are taken first, so that no inner value takes them.
    keep(model_.graphs[0].inputs);
    keep(model_.graphs[0].outputs);
    for (const Initializer& each : model_.initializers) name(each.value, "const");
    for (size_t i = 0; i < model_.graphs.size(); ++i) {
      Graph& graph = model_.graphs[i];
      if (graph.name.empty()) graph.name = i == 0 ? "main" : format("graph_{}", i);
      for (Ref ref : graph.inputs) name(ref, "input");
      for (Node& node : graph.nodes) {
        for (Ref ref : node.outputs) name(ref, node.op);
        node.name = nodes_.unique(node.name.empty() ? node.op : format("{}/{}", node.name, node.op));
      }
    }
  }

 private:
  void keep(const std::vector<Ref>& refs) {
    for (Ref ref : refs) {
      if (model_[ref].name.empty()) continue;
      values_.reserve(model_[ref].name);
      is_named_[ref.index] = true;
    }
  }

  void name(Ref ref, const std::string& stem) {
    if (!ref.is_valid() || is_named_[ref.index]) return;
    is_named_[ref.index] = true;
    std::string& name = model_[ref].name;
    name = name.empty() ? values_.numbered(stem, 0) : values_.unique(name);
  }

  Model& model_;
  std::vector<bool> is_named_;  // by value
  NameTable values_, nodes_;
};

}  // namespace

void name_model(Model& model) { Namer(model).run(); }

}  // namespace argosy::onnx
