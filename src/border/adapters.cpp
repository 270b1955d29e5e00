#include <map>

#include "base/text.h"
#include "border/edits.h"

namespace argosy {
namespace {

/// Ops that multiply with a weight, and where the other factor and the weight are among their operands.
struct WeightProduct {
  std::string_view op;
  size_t input, weight;
};
constexpr WeightProduct kWeightProducts[] = {
    {"aten.linear.default", 0, 1},
    {"aten.mm.default", 0, 1},
    {"aten.matmul.default", 0, 1},
    {"aten.addmm.default", 1, 2},
};

/// The two inputs of a module, shared by all uses of its weight.
struct AdapterInputs {
  ValueId down, up;
};

class Attaching {
 public:
  Attaching(Border& border, const std::vector<std::string>& modules) : border_(border) {
    for (const std::string& module : modules) modules_.emplace(format("{}.weight", module), module);
  }

  void run() {
    std::vector<NodeId> nodes;
    for (NodeId node : border_.graph().nodes()) nodes.push_back(node);
    for (NodeId node : nodes) visit(node);
    for (const auto& [weight, module] : modules_) {
      if (inputs_.contains(module)) continue;
      Border::refuse(
          format("an adapter is for {}, and the graph has no product with {}", quoted(module), quoted(weight)),
          "merge it: --adapter");
    }
  }

 private:
  void visit(NodeId id) {
    const Node& node = border_.graph()[id];
    std::string_view op = border_.program.schemas[node.op].name;
    for (const WeightProduct& product : kWeightProducts) {
      if (product.op != op) continue;
      const ValueId* weight = node.arguments[product.weight].get_if<ValueId>();
      if (weight == nullptr || !border_.graph()[*weight].weight.is_valid()) return;
      auto found = modules_.find(border_.program[border_.graph()[*weight].weight].name);
      if (found != modules_.end()) attach(id, AtenBuilder::operand(node, product.input), found->second);
    }
  }

  /// The product is written anew, and its users take the sum.
  void attach(NodeId id, ValueId x, const std::string& module) {
    const Node node = border_.graph()[id];
    const ValueId old = node.outputs[0];
    const TensorType type = border_.type(old);
    AtenBuilder& f = border_.before(id);
    const AdapterInputs& inputs = inputs_of(f, module, x, type);
    NodeId again = border_.rewriter.create(node.op, node.arguments, {{border_.graph()[old].name, type}});
    ValueId low = f.matmul(x, inputs.down);
    ValueId change = f.matmul(low, inputs.up);
    border_.rewriter.replace(id, std::vector<ValueId>{f.add(border_.graph()[again].outputs[0], change)});
  }

  const AdapterInputs& inputs_of(AtenBuilder& f, const std::string& module, ValueId x, const TensorType& product) {
    auto [found, is_new] = inputs_.try_emplace(module);
    if (is_new) {
      SymExpr rank = border_.new_size(format("lora_rank_{}", inputs_.size()));
      found->second.down =
          border_.add_input(adapter_input(module, AdapterMatrix::kDown), product.dtype, {f.size(x, -1), rank});
      found->second.up =
          border_.add_input(adapter_input(module, AdapterMatrix::kUp), product.dtype, {rank, product.shape.back()});
    }
    return found->second;
  }

  Border& border_;
  std::map<std::string, std::string> modules_;   // by their weights
  std::map<std::string, AdapterInputs> inputs_;  // by modules
};

}  // namespace

void apply(Border& border, const AttachAdapters& edit) { Attaching(border, edit.modules).run(); }

}  // namespace argosy
