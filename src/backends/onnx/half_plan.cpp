#include "backends/onnx/half_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "backends/onnx/fold.h"
#include "backends/onnx/half_fit.h"
#include "backends/onnx/names.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

/// What an op of floats is to the plan.
enum class Role : uint8_t { kNone, kProduct, kElements, kMoves };

struct RoleOfOp {
  std::string_view op;
  Role role;
};

// Sorted by op. All f32 inputs and outputs of these have one type.
constexpr auto kRoles = std::to_array<RoleOfOp>({
    {"Abs", Role::kElements},
    {"Add", Role::kElements},
    {"Clip", Role::kElements},
    {"Concat", Role::kMoves},
    {"Conv", Role::kProduct},
    {"ConvTranspose", Role::kProduct},
    {"DepthToSpace", Role::kMoves},
    {"Div", Role::kElements},
    {"Einsum", Role::kProduct},
    {"Elu", Role::kElements},
    {"Erf", Role::kElements},
    {"Expand", Role::kMoves},
    {"Flatten", Role::kMoves},
    {"Gather", Role::kMoves},
    {"GatherElements", Role::kMoves},
    {"GatherND", Role::kMoves},
    {"Gelu", Role::kElements},
    {"Gemm", Role::kProduct},
    {"HardSigmoid", Role::kElements},
    {"HardSwish", Role::kElements},
    {"Identity", Role::kMoves},
    {"LeakyRelu", Role::kElements},
    {"MatMul", Role::kProduct},
    {"Max", Role::kElements},
    {"MaxPool", Role::kElements},
    {"Min", Role::kElements},
    {"Mul", Role::kElements},
    {"Neg", Role::kElements},
    {"PRelu", Role::kElements},
    {"Pad", Role::kMoves},
    {"Relu", Role::kElements},
    {"Reshape", Role::kMoves},
    {"Sigmoid", Role::kElements},
    {"Slice", Role::kMoves},
    {"SpaceToDepth", Role::kMoves},
    {"Split", Role::kMoves},
    {"Squeeze", Role::kMoves},
    {"Sub", Role::kElements},
    {"Sum", Role::kElements},
    {"Tanh", Role::kElements},
    {"Tile", Role::kMoves},
    {"Transpose", Role::kMoves},
    {"Unsqueeze", Role::kMoves},
    {"Where", Role::kElements},
    {"com.microsoft.FusedMatMul", Role::kProduct},
    {"com.microsoft.MultiHeadAttention", Role::kProduct},
    {"com.microsoft.QuickGelu", Role::kElements},
});

Role role_of(const Node& node) {
  static_assert(std::ranges::is_sorted(kRoles, {}, &RoleOfOp::op));
  const std::string op = node.domain.empty() ? node.op : node.domain + "." + node.op;
  const auto* found = std::ranges::lower_bound(kRoles, op, {}, &RoleOfOp::op);
  return found != kRoles.end() && found->op == op ? found->role : Role::kNone;
}

bool is_literal(const TensorSource& source) { return source.recipe().starts_with("literal("); }

/// Whether numbers of a small constant keep their digits in f16; infinities are numbers of it.
bool keeps_digits(const Constant& constant) {
  constexpr double kSmallestNormal = 6.103515625e-05, kLargestHalf = 65504;
  return std::ranges::all_of(constant.reals, [&](double value) {
    double size = std::abs(value);
    return size == 0 || std::isinf(size) || (size >= kSmallestNormal && size <= kLargestHalf);
  });
}

class HalfPlanner {
 public:
  HalfPlanner(const Model& model, const std::map<std::string, double>* seen)
      : model_(model), seen_(seen), named_(model), values_(model.values.size()) {
    name_model(named_);
    index();
  }

  Result<HalfPlan> run() {
    while (follow()) {
    }
    for (Each& each : nodes_) choose(each);
    while (settle()) {
    }
    // Only what structure leaves is looked at: so the plan says what numbers alone forbid.
    for (Each& each : nodes_) ARGOSY_TRY_STATUS(look_at_numbers(each));
    while (settle()) {
    }
    for (Each& each : nodes_) avoid_cast(each);
    return result();
  }

  /// After run().
  std::vector<Ref> candidates() const { return asked_; }

 private:
  /// What is known of a value.
  struct Known {
    std::optional<size_t> producer;  // in nodes_
    std::vector<size_t> readers;     // in nodes_
    TensorSourcePtr constant;
    bool is_output = false;
    bool is_counted = false;        // computed of integers and constants alone
    bool is_given = false;          // by callers, or by a loop; perhaps moved since
    bool is_angle = false;          // sine or cosine is taken of it
    bool is_read_as_f32 = false;    // by something, perhaps after moves
    std::optional<bool> fits = {};  // of a constant
    bool is_asked = false;
  };

  struct Each {
    const Node* node;
    size_t graph;
    Role role;
    Precision precision = Precision::kOther;
  };

  void index() {
    for (const Initializer& each : model_.initializers) values_[each.value.index].constant = each.tensor;
    for (size_t graph = 0; graph < model_.graphs.size(); ++graph) {
      for (Ref ref : model_.graphs[graph].inputs) values_[ref.index].is_given = true;
      for (Ref ref : model_.graphs[graph].outputs) values_[ref.index].is_output = true;
      for (const Node& node : model_.graphs[graph].nodes) {
        size_t at = nodes_.size();
        nodes_.push_back({&node, graph, role_of(node)});
        for (Ref ref : node.outputs) {
          if (ref.is_valid()) values_[ref.index].producer = at;
        }
        for (Ref ref : node.inputs) {
          if (ref.is_valid()) values_[ref.index].readers.push_back(at);
        }
      }
    }
    for (Each& each : nodes_) refine(each);
  }

  /// Roles that depend on what a node reads.
  void refine(Each& each) const {
    const Node& node = *each.node;
    bool has_floats = !node.outputs.empty() && is_single(model_, node.outputs[0]);
    if (!has_floats) {
      each.role = Role::kNone;
    } else if (node.op == "Div" && !constant(node.inputs[1])) {
      each.role = Role::kNone;  // by small numbers it grows
    } else if (node.op == "Gather") {
      const TensorSource* rows = constant(node.inputs[0]);
      if (rows != nullptr && rows->shape().size() == 2 && !is_literal(*rows)) each.role = Role::kProduct;
    }
  }

  const TensorSource* constant(Ref ref) const { return ref.is_valid() ? values_[ref.index].constant.get() : nullptr; }

  /// Inputs of f32 that are computed or given.
  std::vector<Ref> activations(const Node& node) const {
    std::vector<Ref> found;
    for (Ref ref : node.inputs) {
      if (is_single(model_, ref) && constant(ref) == nullptr) found.push_back(ref);
    }
    return found;
  }

  template <class Test>
  bool any_activation(const Node& node, Test test) const {
    return std::ranges::any_of(activations(node), [&](Ref ref) { return test(values_[ref.index]); });
  }

  static bool set(bool& flag, bool value) { return value && !std::exchange(flag, true); }

  /// One round of facts that travel along nodes; whether there were new ones.
  bool follow() {
    bool has_changed = false;
    for (const Each& each : nodes_) {
      std::vector<Ref> inputs = activations(*each.node);
      bool is_weight = inputs.empty() && (each.role == Role::kMoves || each.role == Role::kProduct);
      bool counted = !is_weight && std::ranges::all_of(inputs, [&](Ref ref) { return values_[ref.index].is_counted; });
      bool given = each.role == Role::kMoves && any_activation(*each.node, [](const Known& v) { return v.is_given; });
      for (Ref ref : each.node->outputs) {
        if (!is_single(model_, ref)) continue;
        has_changed |= set(values_[ref.index].is_counted, counted);
        has_changed |= set(values_[ref.index].is_given, given);
      }
    }
    for (size_t i = nodes_.size(); i-- > 0;) {
      const Each& each = nodes_[i];
      bool passes_on = each.role == Role::kElements || each.role == Role::kMoves;
      bool angle = each.node->op == "Sin" || each.node->op == "Cos" || (passes_on && leads_to_angle(*each.node));
      if (!angle) continue;
      for (Ref ref : activations(*each.node)) has_changed |= set(values_[ref.index].is_angle, true);
    }
    return has_changed;
  }

  bool leads_to_angle(const Node& node) const {
    return std::ranges::any_of(node.outputs, [&](Ref ref) { return ref.is_valid() && values_[ref.index].is_angle; });
  }

  /// What a node is if neither its neighbours nor numbers matter.
  void choose(Each& each) const {
    if (each.role == Role::kNone) return;
    bool is_counted = any_activation(*each.node, [](const Known& v) { return v.is_counted; });
    bool is_wanted = each.role == Role::kProduct    ? is_wanted_product(*each.node)
                     : each.role == Role::kElements ? !activations(*each.node).empty() && !is_counted
                                                    : true;
    each.precision = is_wanted ? Precision::kHalf : Precision::kStructure;
  }

  Status look_at_numbers(Each& each) {
    if (each.precision != Precision::kHalf) return {};
    for (Ref ref : each.node->inputs) {
      if (!is_single(model_, ref) || constant(ref) == nullptr) continue;
      ARGOSY_TRY(bool fits, constant_fits(ref));
      if (!fits) each.precision = Precision::kWeight;
    }
    if (each.precision == Precision::kHalf && each.role != Role::kMoves) return look_at_values(each);
    return {};
  }

  bool is_wanted_product(const Node& node) const {
    std::vector<Ref> inputs = activations(node);
    bool has_weight = std::ranges::any_of(node.inputs, [&](Ref ref) { return is_weight(ref); });
    if (node.op == "Gather") return true;
    if (inputs.empty() || leads_to_angle(node)) return false;
    return std::ranges::none_of(inputs, [&](Ref ref) {
      const Known& known = values_[ref.index];
      // What callers give, such as a cache, would be rounded anew in each call.
      return known.is_counted || (known.is_given && !has_weight);
    });
  }

  /// A constant of the model's, perhaps moved.
  bool is_weight(Ref ref) const {
    if (!is_single(model_, ref)) return false;
    if (const TensorSource* source = constant(ref)) return !is_literal(*source);
    const std::optional<size_t>& producer = values_[ref.index].producer;
    if (!producer) return false;
    const Each& each = nodes_[*producer];
    return each.role == Role::kMoves && activations(*each.node).empty();
  }

  Result<bool> constant_fits(Ref ref) {
    Known& known = values_[ref.index];
    if (known.fits) return *known.fits;
    known.fits = true;
    const TensorSourcePtr& source = known.constant;
    if (is_literal(*source) && source->elements() <= kMaxFoldedElements) {
      if (auto small = read_constant(*source)) known.fits = keeps_digits(*small);
      return *known.fits;
    }
    if (source->recipe().starts_with("shape_only(")) return true;  // nobody knows
    ARGOSY_TRY(known.fits, fits_half(source));
    return *known.fits;
  }

  /// What a node reads and computes must have been seen to be small.
  Status look_at_values(Each& each) {
    std::vector<Ref> refs = activations(*each.node);
    for (Ref ref : each.node->outputs) {
      if (is_single(model_, ref)) refs.push_back(ref);
    }
    if (each.graph != 0) {
      if (seen_ != nullptr) each.precision = Precision::kUnseen;
      return {};
    }
    for (Ref ref : refs) {
      if (!std::exchange(values_[ref.index].is_asked, true)) asked_.push_back(ref);
      if (seen_ == nullptr) continue;
      auto found = seen_->find(named_[ref].name);
      if (found == seen_->end()) {
        return fail(ErrorCode::kInvalidInput,
                    format("the values that were seen lack {} of {}", quoted(named_[ref].name), model_.graphs[0].name),
                    "they are of another model or of other options: have them seen anew");
      }
      if (found->second <= kLargestSeen) continue;
      each.precision = Precision::kValue;
      if (found->second > plan_.largest) {
        plan_.largest = found->second;
        plan_.largest_at = each.node->name;
      }
    }
    return {};
  }

  bool is_half(Ref ref) const {
    const std::optional<size_t>& producer = values_[ref.index].producer;
    return producer && nodes_[*producer].precision == Precision::kHalf;
  }

  /// One round of neighbours; whether a node became f32.
  bool settle() {
    bool has_changed = false;
    auto widen = [&](Each& each) {
      each.precision = Precision::kStructure;
      has_changed = true;
    };
    for (Each& each : nodes_) {
      if (each.precision != Precision::kHalf || each.role == Role::kProduct) continue;
      if (!std::ranges::all_of(activations(*each.node), [&](Ref ref) { return is_half(ref); })) widen(each);
    }
    for (size_t i = nodes_.size(); i-- > 0;) {
      Each& each = nodes_[i];
      bool is_read = false;
      for (Ref ref : each.node->outputs) is_read = is_read || (ref.is_valid() && is_read_as_f32(ref));
      bool moves = each.role == Role::kMoves;
      bool follows_readers = each.role == Role::kElements || (moves && activations(*each.node).empty());
      if (each.precision == Precision::kHalf && follows_readers && is_read) widen(each);
      if (each.precision == Precision::kHalf && !(moves && is_read)) continue;
      for (Ref ref : each.node->inputs) {
        if (is_single(model_, ref)) has_changed |= set(values_[ref.index].is_read_as_f32, true);
      }
    }
    return has_changed;
  }

  /// A move of a value that is read as f32 besides, for readers of f32: it moves the wider one, and needs no cast.
  void avoid_cast(Each& each) const {
    if (each.precision != Precision::kHalf || each.role != Role::kMoves) return;
    auto has_half_reader = [&](Ref ref) {
      return ref.is_valid() && std::ranges::any_of(values_[ref.index].readers, [&](size_t reader) {
               return nodes_[reader].precision == Precision::kHalf;
             });
    };
    if (std::ranges::any_of(each.node->outputs, has_half_reader)) return;
    bool is_wide_too = std::ranges::all_of(activations(*each.node), [&](Ref ref) {
      return values_[ref.index].is_output || std::ranges::any_of(values_[ref.index].readers, [&](size_t reader) {
               return nodes_[reader].role != Role::kMoves && nodes_[reader].precision != Precision::kHalf;
             });
    });
    if (is_wide_too) each.precision = Precision::kStructure;
  }

  bool is_read_as_f32(Ref ref) const { return values_[ref.index].is_output || values_[ref.index].is_read_as_f32; }

  HalfPlan result() {
    plan_.nodes.resize(model_.graphs.size());
    for (const Each& each : nodes_) {
      plan_.nodes[each.graph].push_back(each.precision);
      if (each.role == Role::kProduct) ++plan_.products[each.precision];
    }
    return std::move(plan_);
  }

  const Model& model_;
  const std::map<std::string, double>* seen_;
  Model named_;
  std::vector<Known> values_;  // by Ref::index
  std::vector<Each> nodes_;    // of all graphs, one after the other
  std::vector<Ref> asked_;
  HalfPlan plan_;
};

}  // namespace

bool is_single(const Model& model, Ref ref) {
  return ref.is_valid() && model[ref].dtype == DType::kF32 && !model[ref].is_sequence;
}

size_t HalfPlan::count(Precision precision) const {
  size_t found = 0;
  for (const std::vector<Precision>& graph : nodes) found += static_cast<size_t>(std::ranges::count(graph, precision));
  return found;
}

Result<HalfPlan> plan_half(const Model& model, const std::map<std::string, double>* seen) {
  return HalfPlanner(model, seen).run();
}

Result<std::vector<Ref>> half_candidates(const Model& model) {
  HalfPlanner planner(model, nullptr);
  ARGOSY_TRY([[maybe_unused]] HalfPlan plan, planner.run());
  return planner.candidates();
}

}  // namespace argosy::onnx
