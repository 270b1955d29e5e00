#include "passes/functionalise.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "ir/aliasing.h"
#include "ir/rewriter.h"
#include "passes/alias_sets.h"
#include "passes/aten_schemas.h"
#include "passes/in_place_ops.h"
#include "passes/view_inverses.h"

namespace argosy {
namespace {

using Kind = InPlaceOp::Kind;

// A long chain of views, written and read by turns, is made again each time: beyond this many nodes the program is not
// a model.
constexpr size_t kMaxRemade = 1'000'000;

/// Whether what is in a tensor changes.
bool writes(Kind kind) {
  return kind == Kind::kFunctional || kind == Kind::kCopy || kind == Kind::kFill || kind == Kind::kDiagonal;
}

/// Ops by id, looked up once.
class InPlaceOps {
 public:
  explicit InPlaceOps(const SchemaTable& schemas) : schemas_(schemas) {}
  const InPlaceOp& operator[](OpId op) {
    if (op.index >= known_.size()) known_.resize(op.index + 1);
    if (!known_[op.index]) known_[op.index] = in_place_op(schemas_[op]);
    return *known_[op.index];
  }

 private:
  const SchemaTable& schemas_;
  std::deque<std::optional<InPlaceOp>> known_;  // a deque, so that answers stay where they are
};

/// Builds the graph anew: old values are those of the graph as it was. Memory that is written somewhere has a version,
/// which counts its writes; a value of that memory is up to date, or is made again from what it is a view of.
class Functionaliser {
 public:
  Functionaliser(Program& program, Component& component, const Graph& old, InPlaceOps& ops, bool is_entry)
      : program_(program),
        old_(old),
        ops_(ops),
        is_entry_(is_entry),
        sets_(program, old),
        versions_(old.value_limit(), kNeverWritten),
        roots_(old.value_limit()),
        members_(old.value_limit()),
        rewriter_(graph_),
        context_{program, component, rewriter_, NodeId{}},
        f_(context_) {}

  /// The graph without writes; its results are still missing.
  Status run() {
    find_written();
    for (ValueId id : old_.inputs()) add_root(id, rewriter_.add_input(new_value(id)));
    for (ValueId id : old_.weights()) add_root(id, rewriter_.add_weight(new_value(id), old_[id].weight));
    for (NodeId node : old_.nodes()) {
      rewriter_.insert_at_end(old_[node].location);
      if (Status status = or_refused([&] { return visit(node); }); !status) {
        return fail(at_node(std::move(status).error(), program_, old_, node));
      }
    }
    rewriter_.insert_at_end();
    return {};
  }

  /// Sets the results: first those given, then what the old ones are by now.
  Result<Graph> finish(std::vector<Argument> outputs) {
    for (const Argument& output : old_.outputs()) {
      ARGOSY_TRY(Argument now, read_values(output));
      outputs.push_back(std::move(now));
    }
    rewriter_.set_outputs(std::move(outputs));
    return std::move(graph_);
  }

  /// The new value of an input.
  ValueId moved(ValueId input) const { return *graph_.find(old_[input].name); }

  /// Whether memory of this old value was written.
  bool is_changed(ValueId old_value) { return is_tracked(old_value) && version_of(old_value) > 0; }

  /// What an old value is by now.
  Result<ValueId> read(ValueId old_value) {
    if (!is_tracked(old_value)) return members_[old_value.index].now;
    std::vector<ValueId> stale;
    ValueId value = named(old_value);
    while (members_[value.index].version != version_of(value)) {
      if (!members_[value.index].is_certain) return fail(doubt(value));
      stale.push_back(value);
      value = named(members_[value.index].parent);
    }
    while (!stale.empty()) {
      ARGOSY_TRY_STATUS(make_again(stale.back()));
      stale.pop_back();
    }
    return members_[named(old_value).index].now;
  }

 private:
  static constexpr uint32_t kNeverWritten = UINT32_MAX;

  struct Member {
    ValueId now;     // in the new graph, as of `version`
    ValueId parent;  // old value that this is a view of; invalid: none, or this
    NodeId view;     // old node that makes it from `parent`
    uint32_t version = 0;
    bool is_certain = true;  // false: not known whether it shares memory with its parent
  };

  // ---- which memory a value has ----

  void find_written() {
    for (NodeId node : old_.nodes()) {
      Kind kind = ops_[old_[node].op].kind;
      if (!writes(kind)) continue;
      if (const ValueId* self = old_[node].arguments[0].get_if<ValueId>()) version_of(*self) = 0;
    }
  }

  uint32_t& version_of(ValueId old_value) { return versions_[sets_.set_of(old_value).index]; }
  /// Whether the memory of a value is written at some time.
  bool is_tracked(ValueId old_value) { return version_of(old_value) != kNeverWritten; }

  NewValue new_value(ValueId old_value) const {
    const Value& value = old_[old_value];
    return {value.name, value.type, value.storage};
  }

  /// Records memory that is new, or a caller's.
  void add_root(ValueId old_value, ValueId now) {
    Member& member = members_[old_value.index];
    member.now = now;
    if (!is_tracked(old_value)) return;
    ValueId& root = roots_[sets_.set_of(old_value).index];
    if (!root.is_valid()) {
      root = old_value;
      return;
    }
    // Tied weights are one tensor; how other weights in one piece of memory overlap is not known.
    if (is_tied(old_value, root)) member.parent = root;
    member.is_certain = member.parent.is_valid();
  }

  bool is_tied(ValueId a, ValueId b) const {
    auto root = [&](WeightId weight) {
      return program_[weight].tied_to.is_valid() ? program_[weight].tied_to : weight;
    };
    return old_[a].weight.is_valid() && old_[b].weight.is_valid() && root(old_[a].weight) == root(old_[b].weight);
  }

  /// Records an output: new memory, the same as an operand, or a view of it.
  void add_output(NodeId node, size_t index, ValueId now) {
    ValueId output = old_[node].outputs[index];
    members_[output.index].now = now;
    if (!is_tracked(output)) return;
    ValueId parent;
    for (const Argument& argument : old_[node].arguments) {
      for_each_value(argument, [&](ValueId id, uint32_t) {
        if (!parent.is_valid() && sets_.are_aliases(id, output)) parent = id;
      });
    }
    if (!parent.is_valid()) return add_root(output, now);
    Member& member = members_[output.index];
    member = {.now = now, .parent = parent, .view = node, .version = version_of(output)};
    const OpSchema& schema = program_.schemas[old_[node].op];
    bool is_recorded = old_[parent].storage.is_valid() && old_[output].storage.is_valid();
    member.is_certain = !schema.name.starts_with("higher_order.") &&
                        (is_recorded || alias_of(schema, old_, old_[node].arguments, old_[output].type, index).kind ==
                                            Aliasing::kOperand);
    // The same tensor under another name needs no node.
    if (member.is_certain && is_identity(schema)) member = {.now = now, .parent = parent, .view = {}};
  }

  /// The value that an old one is just another name of.
  ValueId named(ValueId old_value) {
    ValueId found = old_value;
    while (is_other_name(found)) found = members_[found.index].parent;
    while (is_other_name(old_value)) old_value = std::exchange(members_[old_value.index].parent, found);
    return found;
  }
  bool is_other_name(ValueId old_value) const {
    return members_[old_value.index].parent.is_valid() && !members_[old_value.index].view.is_valid();
  }

  // ---- reading ----

  Result<Argument> read_values(Argument argument) {
    Status status;
    for_each_value(argument, [&](ValueId& id, uint32_t) {
      if (!status) return;
      Result<ValueId> now = read(id);
      if (now) id = *now;
      if (!now) status = fail(std::move(now).error());
    });
    if (!status) return fail(std::move(status).error());
    return argument;
  }

  /// Arguments of a view, for making it again: sizes and tensors that only lend their shape may be of any version.
  std::vector<Argument> latest_arguments(const Node& node, ValueId parent, ValueId parent_now) {
    std::vector<Argument> arguments = node.arguments;
    for (Argument& argument : arguments) {
      for_each_value(argument,
                     [&](ValueId& id, uint32_t) { id = id == parent ? parent_now : members_[named(id).index].now; });
    }
    return arguments;
  }

  Status make_again(ValueId old_value) {
    if (++remade_ > kMaxRemade) {
      return fail(ErrorCode::kUnsupportedFeature, "views of views are written and read by turns, too often");
    }
    const Member member = members_[old_value.index];
    const Node& node = old_[member.view];
    ValueId parent_now = members_[named(member.parent).index].now;
    ARGOSY_TRY(NodeId made, create(member.view, latest_arguments(node, member.parent, parent_now), true));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Member& other = members_[node.outputs[i].index];
      if (!other.parent.is_valid() || !sets_.are_aliases(node.outputs[i], old_value)) continue;
      other.now = graph_[made].outputs[i];
      other.version = version_of(old_value);
    }
    return {};
  }

  // ---- nodes ----

  Status visit(NodeId id) {
    const Node& node = old_[id];
    const InPlaceOp& op = ops_[node.op];
    if (op.kind == Kind::kRefused) {
      return fail(ErrorCode::kUnsupportedOp,
                  format("op {} writes its arguments, and no op computes the same", program_.schemas[node.op].name),
                  "have the model's code use an op that returns a new tensor");
    }
    bool has_new_strides = false;
    std::vector<Argument> arguments;
    for (const Argument& argument : node.arguments) {
      if (const ValueId* value = argument.get_if<ValueId>()) has_new_strides |= is_changed(*value);
      ARGOSY_TRY(Argument now, read_values(argument));
      arguments.push_back(std::move(now));
    }
    if (op.kind == Kind::kNone || op.kind == Kind::kView) {
      ARGOSY_TRY(NodeId made, create(id, std::move(arguments), has_new_strides));
      for (size_t i = 0; i < node.outputs.size(); ++i) add_output(id, i, graph_[made].outputs[i]);
      return {};
    }
    ValueId self = std::get<ValueId>(node.arguments[0].variant());
    ValueId result = node.outputs[0];
    if (op.kind == Kind::kIdentity) {
      members_[result.index] = {.now = members_[named(self).index].now, .parent = self, .view = {}};
      return {};
    }
    ValueId written = what_is_written(f_, op, arguments);
    ARGOSY_TRY_STATUS(write(self, written));
    members_[result.index] = {.now = written, .parent = self, .view = {}};
    return {};
  }

  /// A copy of an old node. A tensor made by a write may have other strides, on which a view may fail: reshape instead.
  Result<NodeId> create(NodeId like, std::vector<Argument> arguments, bool has_new_strides) {
    const Node& node = old_[like];
    OpId op = node.op;
    std::string_view text;
    if (ops_[op].kind == Kind::kView) text = ops_[op].schema;
    if (has_new_strides && program_.schemas[op].name == "aten.view.default") text = aten::kReshape;
    if (!text.empty()) {
      ARGOSY_TRY(op, find_or_add(program_.schemas, text));
    }
    std::vector<NewValue> outputs;
    for (ValueId output : node.outputs) {
      // Old values keep their names; an added value that has one of them is renamed.
      std::optional<ValueId> taken = graph_.find(old_[output].name);
      if (taken && !members_[output.index].now.is_valid()) rewriter_.rename(*taken, old_[output].name + "_new");
      outputs.push_back(new_value(output));
      if (members_[output.index].now.is_valid()) outputs.back().storage = {};
    }
    return rewriter_.create(op, std::move(arguments), std::move(outputs));
  }

  // ---- writing ----

  Status write(ValueId self, ValueId written) {
    uint32_t next = version_of(self) + 1;
    ValueId value = named(self);
    while (true) {
      Member& member = members_[value.index];
      if (!member.is_certain) return fail(doubt(value));
      ValueId parent = member.parent;
      if (!parent.is_valid()) break;
      ARGOSY_TRY(ValueId parent_now, read(parent));
      ARGOSY_TRY(ValueId parent_written, inverse(value, written, parent_now));
      members_[value.index].now = written;
      members_[value.index].version = next;
      written = parent_written;
      value = named(parent);
    }
    if (!is_entry_ && !old_[value].producer.is_valid()) {
      return fail(ErrorCode::kUnsupportedFeature, format("a sub-graph writes to its operand %{}", old_[value].name),
                  "have the model's code write to a copy (clone) inside conditions and loops");
    }
    members_[value.index].now = written;
    members_[value.index].version = next;
    version_of(self) = next;
    return {};
  }

  Result<ValueId> inverse(ValueId view, ValueId written, ValueId parent_now) {
    const Member& member = members_[view.index];
    const Node& node = old_[member.view];
    const OpSchema* schema = &program_.schemas[node.op];
    if (ops_[node.op].kind == Kind::kView) {
      ARGOSY_TRY(OpId op, find_or_add(program_.schemas, ops_[node.op].schema));
      schema = &program_.schemas[op];
    }
    std::vector<Argument> arguments = latest_arguments(node, member.parent, parent_now);
    std::vector<TensorType> outputs;
    size_t index = 0;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == view) index = i;
      outputs.push_back(std::get<TensorType>(old_[node.outputs[i]].type));
    }
    auto write = [&]() -> Result<ValueId> {
      return parent_after(f_, {.schema = *schema,
                               .arguments = arguments,
                               .outputs = outputs,
                               .output = index,
                               .written = written,
                               .parent = parent_now});
    };
    Result<ValueId> result = or_refused(write);
    if (!result) return fail(at_node(std::move(result).error(), program_, old_, member.view));
    return result;
  }

  Error doubt(ValueId value) const {
    const Member& member = members_[value.index];
    std::string with = member.parent.is_valid() ? '%' + old_[member.parent].name : "another value";
    return {ErrorCode::kUnsupportedFeature,
            format("whether %{} shares memory with {}, which is written, is not known", old_[value].name, with),
            "capture the model with argosy, which records it"};
  }

  Program& program_;
  const Graph& old_;
  InPlaceOps& ops_;
  bool is_entry_;
  AliasSets sets_;
  std::vector<uint32_t> versions_;  // by the value that names a set
  std::vector<ValueId> roots_;      // by the value that names a set: the one whose memory it is
  std::vector<Member> members_;     // by index of the old value
  Graph graph_;
  Rewriter rewriter_;
  RuleContext context_;
  AtenBuilder f_;
  size_t remade_ = 0;
};

/// What a write to a weight means for callers; nullopt: nothing, it is gone with the call.
std::optional<OutputKind> mutation_of(WeightKind kind) {
  bool is_buffer = kind == WeightKind::kBuffer || kind == WeightKind::kNonPersistentBuffer;
  return is_buffer ? std::optional(OutputKind::kBufferMutation) : std::nullopt;
}

/// Makes what was written to inputs and buffers results of the entry graph.
class Mutations {
 public:
  Mutations(Program& program, Component& component, Functionaliser& functional, Diagnostics& diagnostics)
      : program_(program), component_(component), functional_(functional), diagnostics_(diagnostics) {}

  Result<std::vector<Argument>> collect() {
    const Graph& old = component_.entry();
    for (ValueId value : old.weights()) {
      if (!functional_.is_changed(value)) continue;
      const Weight& weight = program_[old[value].weight];
      if (auto kind = mutation_of(weight.kind)) {
        ARGOSY_TRY_STATUS(add(*kind, weight.name, value));
        continue;
      }
      diagnostics_.notes.push_back(
          format("component {}: the model changes its parameter {} while it runs; each call starts from the stored one",
                 component_.name, weight.name));
    }
    for (const InputSpec& input : component_.inputs) {
      if (!input.value.is_valid() || !functional_.is_changed(input.value)) continue;
      ARGOSY_TRY_STATUS(add(OutputKind::kInputMutation, input.name, input.value));
    }
    component_.outputs.insert(component_.outputs.begin(), specs_.begin(), specs_.end());
    return std::move(values_);
  }

 private:
  Status add(OutputKind kind, const std::string& target, ValueId value) {
    // If the program already has an output for this mutation, that is copied over after all writes.
    for (const OutputSpec& known : component_.outputs) {
      if (known.kind == kind && known.target == target) return {};
    }
    ARGOSY_TRY(ValueId now, functional_.read(value));
    values_.emplace_back(now);
    specs_.push_back({.kind = kind, .name = "", .target = target});
    return {};
  }

  Program& program_;
  Component& component_;
  Functionaliser& functional_;
  Diagnostics& diagnostics_;
  std::vector<Argument> values_;
  std::vector<OutputSpec> specs_;
};

Result<bool> functionalise_graph(Program& program, Component& component, size_t index, InPlaceOps& ops,
                                 Diagnostics& diagnostics) {
  Graph& graph = component.graphs[index];
  bool has_writes = false;
  for (NodeId node : graph.nodes()) has_writes |= ops[graph[node].op].kind != Kind::kNone;
  if (!has_writes) return false;
  bool is_entry = index == 0;
  Functionaliser functional(program, component, graph, ops, is_entry);
  ARGOSY_TRY_STATUS(functional.run());
  std::vector<Argument> outputs;
  if (is_entry) {
    ARGOSY_TRY(outputs, Mutations(program, component, functional, diagnostics).collect());
    for (InputSpec& input : component.inputs) {
      if (input.value.is_valid()) input.value = functional.moved(input.value);
    }
  }
  ARGOSY_TRY(Graph made, functional.finish(std::move(outputs)));
  graph = std::move(made);
  return true;
}

}  // namespace

Pass functionalise() {
  return {"functionalise", [](Program& program, PassContext& context) -> Result<bool> {
            bool has_changed = false;
            InPlaceOps ops(program.schemas);
            for (Component& component : program.components) {
              for (size_t i = 0; i < component.graphs.size(); ++i) {
                ARGOSY_TRY(bool has_graph_changed,
                           functionalise_graph(program, component, i, ops, context.diagnostics));
                has_changed |= has_graph_changed;
              }
            }
            return has_changed;
          }};
}

}  // namespace argosy
