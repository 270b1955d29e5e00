#include <algorithm>

#include "base/text.h"
#include "frontends/pt2/component_reader.h"
#include "frontends/pt2/promotion.h"
#include "frontends/pt2/value_table.h"
#include "frontends/pt2/wrapped_numbers.h"
#include "ir/rewriter.h"

namespace argosy {
namespace {

constexpr std::string_view kScalarTensor =
    "aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor";

/// Python's own functions: arguments go by position, names are only for readers.
bool is_positional(const OpSchema& schema) { return schema.text.find("::") == std::string::npos; }

/// <, <=, > or >= of sizes.
bool is_size_order(const OpSchema& schema) {
  return schema.name == "_operator.le" || schema.name == "_operator.lt" || schema.name == "_operator.ge" ||
         schema.name == "_operator.gt";
}

}  // namespace

/// Reads one graph of the JSON; sub-graphs by recursion.
class GraphReader {
 public:
  GraphReader(ComponentReader& shared, const JsonField& json, JsonView companion, int depth)
      : shared_(shared),
        json_(json),
        companion_storages_(companion.find("storages")),
        companion_subgraphs_(companion.find("subgraphs")),
        companion_nodes_(companion.find("nodes")),
        depth_(depth),
        scope_{graph_},
        rewriter_(graph_),
        arguments_(scope_, [this](const JsonField& as_graph) { return read_subgraph(as_graph); }),
        promoter_(shared.program_.schemas, shared.storages_,
                  [this](std::string name) { return unused_name(std::move(name)); }) {}

  Status read(std::span<const InputRole> roles) {
    ARGOSY_TRY_STATUS(json_.require_object());
    ARGOSY_TRY_STATUS(open_tables());
    ARGOSY_TRY_STATUS(depth_ == 0 ? read_entry_inputs(roles) : read_inputs());
    JsonField nodes = json_.member("nodes");
    ARGOSY_TRY_STATUS(nodes.require_array());
    auto location = companion_nodes_.items().begin(), location_end = companion_nodes_.items().end();
    int64_t index = 0;
    for (JsonView item : nodes.view().items()) {
      JsonField node = nodes.item(item, index++);
      JsonView location_index;
      if (location != location_end) {
        location_index = *location;
        ++location;
      }
      ARGOSY_TRY(LocationId where, node_location(node, location_index));
      if (Status status = read_node(node, where); !status)
        return fail(describe(std::move(status).error(), node, where));
    }
    return read_outputs();
  }

  Graph take() { return std::move(graph_); }

 private:
  // ---- names and types ----

  Status open_tables() {
    ARGOSY_TRY_STATUS(tensor_values_.open(json_, "tensor_values", true));
    ARGOSY_TRY_STATUS(int_values_.open(json_, "sym_int_values", true));
    ARGOSY_TRY_STATUS(bool_values_.open(json_, "sym_bool_values", true));
    return float_values_.open(json_, "sym_float_values", false);  // came with a later minor version
  }

  bool is_taken(const std::string& name) {
    return graph_.find(name).has_value() || tensor_values_.contains(json_, name) || int_values_.contains(json_, name) ||
           float_values_.contains(json_, name) || bool_values_.contains(json_, name);
  }

  std::string unused_name(std::string name) {
    if (!is_taken(name)) return name;
    for (size_t number = 1;; ++number) {
      std::string candidate = format("{}_{}", name, number);
      if (!is_taken(candidate)) return candidate;
    }
  }

  Result<NewValue> declare_tensor(const JsonField& tensor) {
    JsonField field = tensor.member("name");
    ARGOSY_TRY(std::string_view name, field.string());
    ARGOSY_TRY_STATUS(check_new(field, name));
    ARGOSY_TRY(JsonView found, tensor_values_.find(json_, name));
    if (!found.is_valid()) return field.error(format("tensor_values has no {}", quoted(name)));
    JsonField values = json_.child("tensor_values", JsonView());
    JsonField meta = values.child(name, found);
    ARGOSY_TRY(TensorType type, shared_.types_.tensor(meta));
    NewValue value{.name = std::string(name), .type = std::move(type)};
    ARGOSY_TRY(value.storage, companion_storage(name));
    return value;
  }

  Result<NewValue> declare_number(const JsonField& symbolic, SymType::Kind kind) {
    JsonField field = symbolic.member("as_name");
    ARGOSY_TRY(std::string_view name, field.string());
    ARGOSY_TRY_STATUS(check_new(field, name));
    ValueTable& table = kind == SymType::Kind::kInt     ? int_values_
                        : kind == SymType::Kind::kFloat ? float_values_
                                                        : bool_values_;
    ARGOSY_TRY(JsonView found, table.find(json_, name));
    if (!found.is_valid()) return field.error(format("{} has no {}", table.key(), quoted(name)));
    JsonField values = json_.child(table.key(), JsonView());
    JsonField number = values.child(name, found);
    ARGOSY_TRY(SymType type, shared_.types_.number(kind, number));
    return NewValue{.name = std::string(name), .type = type};
  }

  Status check_new(const JsonField& field, std::string_view name) const {
    if (name.empty()) return field.error("empty name of a value");
    if (scope_.by_name.contains(name)) return field.error(format("value {} is defined twice", quoted(name)));
    return {};
  }

  /// Declares what a graph input or a node output says: {"as_tensor": …}, {"as_sym_int": …}.
  Result<NewValue> declare(const JsonField& argument) {
    ARGOSY_TRY(auto tag, argument.tag());
    JsonField inner = argument.child(tag.first, tag.second);
    if (tag.first == "as_tensor") return declare_tensor(inner);
    if (tag.first == "as_sym_int") return declare_number(inner, SymType::Kind::kInt);
    if (tag.first == "as_sym_float") return declare_number(inner, SymType::Kind::kFloat);
    if (tag.first == "as_sym_bool") return declare_number(inner, SymType::Kind::kBool);
    return argument.error(ErrorCode::kUnsupportedFeature,
                          format("a value of kind {} is not supported", quoted(tag.first)));
  }

  Result<StorageId> companion_storage(std::string_view name) const {
    if (!companion_storages_.is_valid()) return StorageId{};
    auto found = storages_by_name_.find(name);
    if (found == storages_by_name_.end()) return StorageId{};
    return found->second;
  }

  // ---- inputs ----

  Status read_companion_storages() {
    if (!companion_storages_.is_valid()) return {};
    JsonField field(companion_storages_, "storages");
    ARGOSY_TRY_STATUS(field.require_object());
    for (auto [name, value] : companion_storages_.members()) {
      JsonField item = field.child(name, value);
      ARGOSY_TRY(int64_t id, item.integer());
      if (id < 0 || id >= shared_.storage_count_) return item.error(format("storage {} is out of range", id));
      storages_by_name_.emplace(name, StorageId{static_cast<uint32_t>(id)});
    }
    return {};
  }

  Status read_entry_inputs(std::span<const InputRole> roles) {
    ARGOSY_TRY_STATUS(read_companion_storages());
    JsonField inputs = json_.member("inputs");
    ARGOSY_TRY_STATUS(inputs.require_array());
    if (inputs.view().size() != roles.size()) {
      return inputs.error(format("the graph has {} inputs, its signature {}", inputs.view().size(), roles.size()));
    }
    size_t index = 0;
    for (JsonView item : inputs.view().items()) {
      JsonField field = inputs.item(item, static_cast<int64_t>(index));
      const InputRole& role = roles[index++];
      if (role.kind == InputRole::Kind::kConstant) {
        shared_.component_.inputs.push_back({.name = std::string(role.name), .value = {}, .constant = role.constant});
        continue;
      }
      ARGOSY_TRY(NewValue value, declare(field));
      if (value.name != role.argument) {
        return field.error(
            format("the graph calls this input {}, its signature {}", quoted(value.name), quoted(role.argument)));
      }
      if (role.kind == InputRole::Kind::kUser) {
        if (!companion_storages_.is_valid() && std::holds_alternative<TensorType>(value.type))
          value.storage = shared_.storages_.fresh();
        std::string name = value.name;
        ValueId id = rewriter_.add_input(std::move(value));
        scope_.by_name.emplace(role.argument, id);
        shared_.component_.inputs.push_back({.name = std::move(name), .value = id, .constant = None{}});
        continue;
      }
      ARGOSY_TRY_STATUS(read_weight(field, role, std::move(value)));
    }
    return {};
  }

  Status read_weight(const JsonField& field, const InputRole& role, NewValue value) {
    const TensorType* type = std::get_if<TensorType>(&value.type);
    if (type == nullptr) return field.error(format("weight {} is not a tensor", quoted(role.name)));
    std::vector<int64_t> shape;
    for (SymExpr dim : type->shape) {
      std::optional<int64_t> number = dim.as_integer();
      if (!number) return field.error(format("weight {} has a symbolic size", quoted(role.name)));
      shape.push_back(*number);
    }
    if (role.name.empty()) return field.error("a weight has an empty name");
    ARGOSY_TRY(WeightId weight, shared_.options_.bind_weight(role.weight_kind, role.name, type->dtype, shape));
    if (!bound_.emplace(weight, true).second) return field.error(format("weight {} is bound twice", quoted(role.name)));
    if (!companion_storages_.is_valid()) {
      WeightId root = shared_.program_[weight].tied_to;
      StorageId& storage = shared_.weight_storages_[root.is_valid() ? root : weight];
      if (!storage.is_valid()) storage = shared_.storages_.fresh();
      value.storage = storage;
    }
    scope_.by_name.emplace(role.argument, rewriter_.add_weight(std::move(value), weight));
    return {};
  }

  // Inputs of a sub-graph are passed by the node that calls it. Which memory they share is not known here: a loop's
  // body gets its own results the second time.
  Status read_inputs() {
    ARGOSY_TRY_STATUS(read_companion_storages());
    JsonField inputs = json_.member("inputs");
    ARGOSY_TRY_STATUS(inputs.require_array());
    int64_t index = 0;
    for (JsonView item : inputs.view().items()) {
      JsonField field = inputs.item(item, index++);
      ARGOSY_TRY(NewValue value, declare(field));
      std::string_view name = declared_name(item);
      scope_.by_name.emplace(name, rewriter_.add_input(std::move(value)));
    }
    return {};
  }

  /// The name in the document (not our copy, which may move) of a value that declare() accepted.
  static std::string_view declared_name(JsonView argument) {
    JsonView inner = argument.only_member().second;
    JsonView name = inner.find("name");
    return (name.is_valid() ? name : inner.find("as_name")).as_string().value_or("");
  }

  // ---- nodes ----

  Result<LocationId> node_location(const JsonField& node, JsonView companion_index) {
    if (companion_index.is_valid()) {
      std::optional<int64_t> index = companion_index.as_integer();
      if (!index || *index < -1 || *index >= static_cast<int64_t>(shared_.companion_locations_.size()))
        return node.error("its companion names a location that does not exist");
      return *index < 0 ? LocationId{} : shared_.companion_locations_[static_cast<size_t>(*index)];
    }
    return shared_.locations_.read(node.view().find("metadata"));
  }

  Error describe(Error error, const JsonField& node, LocationId where) const {
    std::string_view target = node.view().find("target").as_string().value_or("?");
    std::string_view name = node.view().find("name").as_string().value_or("");
    std::optional<ModelLocation> location;
    if (where.is_valid()) location = shared_.program_.locations[where];
    return std::move(error.in(format("node {} of {}", quoted(name), op_name_of_target(target)), std::move(location)));
  }

  Status read_node(const JsonField& node, LocationId location) {
    ARGOSY_TRY_STATUS(node.require_object());
    ARGOSY_TRY(std::string_view target, node.member("target").string());
    ARGOSY_TRY(OpId op, shared_.find_op(node, target));
    JsonField inputs = node.member("inputs");
    ARGOSY_TRY_STATUS(inputs.require_array());
    std::vector<std::string_view> names;
    std::vector<NewValue> outputs;
    ARGOSY_TRY_STATUS(read_node_outputs(node, names, outputs));
    ARGOSY_TRY(op, without_wrapped_numbers(inputs, op));
    ARGOSY_TRY(std::vector<Argument> arguments, read_node_inputs(inputs, op, location));
    ARGOSY_TRY_STATUS(promoter_.cast_operands(rewriter_, op, arguments, outputs, location));
    const OpSchema& schema = shared_.program_.schemas[op];
    if (!companion_storages_.is_valid()) shared_.storages_.assign(schema, graph_, arguments, outputs);
    NodeId id = rewriter_.create(op, std::move(arguments), std::move(outputs), location);
    for (size_t i = 0; i < names.size(); ++i) scope_.by_name.emplace(names[i], graph_[id].outputs[i]);
    return {};
  }

  Status read_node_outputs(const JsonField& node, std::vector<std::string_view>& names,
                           std::vector<NewValue>& outputs) {
    JsonField list = node.member("outputs");
    ARGOSY_TRY_STATUS(list.require_array());
    int64_t index = 0;
    for (JsonView item : list.view().items()) {
      JsonField field = list.item(item, index++);
      auto [tag, inner] = item.only_member();
      if (tag != "as_tensors") {
        ARGOSY_TRY(NewValue value, declare(field));
        names.push_back(declared_name(item));
        outputs.push_back(std::move(value));
        continue;
      }
      JsonField tensors = field.child(tag, inner);
      ARGOSY_TRY_STATUS(tensors.require_array());
      int64_t position = 0;
      for (JsonView tensor : inner.items()) {
        JsonField tensor_field = tensors.item(tensor, position++);
        ARGOSY_TRY(NewValue value, declare_tensor(tensor_field));
        names.push_back(tensor.find("name").as_string().value_or(""));
        outputs.push_back(std::move(value));
      }
    }
    if (names.size() > 1) {
      std::vector<std::string_view> sorted = names;
      std::ranges::sort(sorted);
      auto twice = std::ranges::adjacent_find(sorted);
      if (twice != sorted.end()) return list.error(format("value {} is defined twice", quoted(*twice)));
    }
    return {};
  }

  /// The op itself, or the overload that takes as Scalars what this call passes as numbers for tensors.
  Result<OpId> without_wrapped_numbers(const JsonField& inputs, OpId op) {
    const OpSchema& schema = shared_.program_.schemas[op];
    if (is_positional(schema)) return op;
    std::vector<std::string_view> numbers;
    int64_t index = 0;
    for (JsonView item : inputs.view().items()) {
      JsonField field = inputs.item(item, index++);
      JsonField argument = field.member("arg");
      if (!ArgumentReader::is_number(argument)) continue;
      std::string_view name = item.find("name").as_string().value_or("");
      std::optional<uint32_t> position = schema.find_argument(name);
      if (!position) continue;
      const SchemaType& type = schema.arguments[*position].type;
      if (type.kind == SchemaKind::kTensor && !type.is_list) numbers.push_back(schema.arguments[*position].name);
    }
    if (numbers.empty()) return op;
    std::string_view scalar_op = scalar_overload(schema.name, numbers);
    if (scalar_op.empty()) return op;
    ARGOSY_TRY(std::optional<OpId> found, shared_.options_.schemas->resolve(scalar_op, shared_.program_.schemas));
    return found.value_or(op);
  }

  Result<std::vector<Argument>> read_node_inputs(const JsonField& inputs, OpId op, LocationId location) {
    const OpSchema& schema = shared_.program_.schemas[op];
    bool by_position = is_positional(schema);
    bool is_order = is_size_order(schema);
    std::vector<Argument> arguments(schema.arguments.size());
    std::vector<bool> is_given(schema.arguments.size());
    std::vector<uint32_t> wrapped;
    int64_t index = 0;
    for (JsonView item : inputs.view().items()) {
      JsonField field = inputs.item(item, index);
      size_t position = static_cast<size_t>(index++);
      JsonField name_field = field.member("name");
      ARGOSY_TRY(std::string_view name, name_field.string());
      JsonField argument = field.member("arg");
      bool is_keyword = item.find("kind").as_integer() == 2 && !name.empty();
      if (!by_position || is_keyword) {
        std::optional<uint32_t> found = schema.find_argument(name);
        if (!found) return name_field.error(format("op {} has no argument {}", schema.name, quoted(name)));
        position = *found;
      }
      if (position >= schema.arguments.size()) {
        if (!schema.is_variadic) {
          return inputs.error(
              format("op {} takes {} arguments, more were given", schema.name, schema.arguments.size()));
        }
        ARGOSY_TRY(Argument value, arguments_.read_untyped(argument));
        arguments.push_back(std::move(value));
        continue;
      }
      if (is_given[position])
        return field.error(format("argument {} is given twice", quoted(schema.arguments[position].name)));
      is_given[position] = true;
      const SchemaType& type = schema.arguments[position].type;
      if (type.kind == SchemaKind::kTensor && !type.is_list && ArgumentReader::is_number(argument)) {
        ARGOSY_TRY(arguments[position], arguments_.read_untyped(argument));
        wrapped.push_back(static_cast<uint32_t>(position));
        continue;
      }
      ARGOSY_TRY(arguments[position], is_order ? arguments_.read_saturated(argument) : arguments_.read(argument, type));
    }
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
      if (is_given[i]) continue;
      const SchemaArgument& parameter = schema.arguments[i];
      if (parameter.default_value) {
        arguments[i] = *parameter.default_value;
      } else if (!parameter.type.is_optional) {
        return inputs.error(format("op {} needs argument {}, which is missing", schema.name, quoted(parameter.name)));
      }
    }
    for (uint32_t position : wrapped) ARGOSY_TRY_STATUS(unwrap(inputs, arguments, position, location));
    return arguments;
  }

  // A number for a tensor, and no overload that takes it: a tensor without dims stands for it.
  Status unwrap(const JsonField& inputs, std::vector<Argument>& arguments, uint32_t position, LocationId location) {
    Argument number = arguments[position];
    std::optional<DType> dtype = wrapped_dtype(graph_, arguments, number);
    if (!dtype) return inputs.error("the number among the operands does not promote with the other operands");
    if (!number.is<ValueId>()) {
      ARGOSY_TRY(ValueId value, add_constant(number, *dtype));
      arguments[position] = value;
      return {};
    }
    SchemaTable& schemas = shared_.program_.schemas;
    ARGOSY_TRY(std::optional<OpId> op, shared_.options_.schemas->resolve("aten.scalar_tensor.default", schemas));
    if (!op) {
      ARGOSY_TRY(op, schemas.add(kScalarTensor));
    }
    std::vector<Argument> inputs_of_cast;
    for (const SchemaArgument& parameter : schemas[*op].arguments) {
      inputs_of_cast.push_back(parameter.default_value.value_or(Argument(None{})));
      if (parameter.name == "s") inputs_of_cast.back() = number;
      if (parameter.name == "dtype") inputs_of_cast.back() = *dtype;
    }
    TensorType type{.dtype = *dtype, .shape = {}, .strides = {}};
    std::string name = unused_name(graph_[*number.get_if<ValueId>()].name + "_tensor");
    NodeId id = rewriter_.create(*op, std::move(inputs_of_cast),
                                 {NewValue{std::move(name), std::move(type), shared_.storages_.fresh()}}, location);
    arguments[position] = graph_[id].outputs[0];
    return {};
  }

  Result<ValueId> add_constant(const Argument& number, DType dtype) {
    ARGOSY_TRY(TensorSourcePtr source, number_tensor(number, dtype));
    std::string recipe = source->recipe();
    auto bound = number_values_.find(recipe);
    if (bound != number_values_.end()) return bound->second;
    auto [known, is_new] = shared_.number_weights_.try_emplace(recipe);
    if (is_new) {
      std::vector<Weight>& weights = shared_.program_.weights;
      std::string name = format("number_{}", weights.size());
      while (shared_.program_.find_weight(name)) name += '_';
      known->second = WeightId{static_cast<uint32_t>(weights.size())};
      weights.push_back({.name = std::move(name),
                         .kind = WeightKind::kConstant,
                         .dtype = dtype,
                         .shape = {},
                         .source = std::move(source),
                         .tied_to = {}});
    }
    TensorType type{.dtype = dtype, .shape = {}, .strides = {}};
    std::string name = unused_name("c_" + shared_.program_[known->second].name);
    ValueId value = rewriter_.add_weight({std::move(name), std::move(type), shared_.storages_.fresh()}, known->second);
    number_values_.emplace(std::move(recipe), value);
    return value;
  }

  Result<GraphId> read_subgraph(const JsonField& as_graph) {
    if (depth_ + 1 > kMaxGraphDepth) return as_graph.error(format("sub-graphs nest deeper than {}", kMaxGraphDepth));
    JsonField name = as_graph.member("name");
    ARGOSY_TRY(std::string_view name_text, name.string());
    JsonField json = as_graph.member("graph");
    GraphReader reader(shared_, json, companion_subgraphs_.find(name_text), depth_ + 1);
    ARGOSY_TRY_STATUS(reader.read({}));
    GraphId id{static_cast<uint32_t>(shared_.component_.graphs.size())};
    shared_.component_.graphs.push_back(reader.take());
    return id;
  }

  Status read_outputs() {
    JsonField outputs = json_.member("outputs");
    ARGOSY_TRY_STATUS(outputs.require_array());
    std::vector<Argument> values;
    int64_t index = 0;
    for (JsonView item : outputs.view().items()) {
      JsonField field = outputs.item(item, index++);
      ARGOSY_TRY(Argument value, arguments_.read_untyped(field));
      bool is_plain = value.is<ValueId>() || value.is<None>() || value.is<int64_t>() || value.is<double>() ||
                      value.is<bool>() || value.is<std::string>();
      if (!is_plain) return field.error("a graph returns tensors, numbers, texts and none only");
      values.push_back(std::move(value));
    }
    rewriter_.set_outputs(std::move(values));
    return {};
  }

  ComponentReader& shared_;
  const JsonField& json_;
  JsonView companion_storages_, companion_subgraphs_, companion_nodes_;
  int depth_;
  Graph graph_;
  ValueScope scope_;
  Rewriter rewriter_;
  ArgumentReader arguments_;
  Promoter promoter_;
  ValueTable tensor_values_, int_values_, float_values_, bool_values_;
  std::unordered_map<std::string_view, StorageId> storages_by_name_;
  std::map<WeightId, bool> bound_;
  std::map<std::string, ValueId> number_values_;
};

Status ComponentReader::read_entry(const JsonField& graph, std::span<const InputRole> roles) {
  ARGOSY_TRY_STATUS(read_companion());
  component_.graphs.clear();
  component_.graphs.emplace_back();  // the entry's place; sub-graphs come behind it
  GraphReader reader(*this, graph, options_.companion, 0);
  ARGOSY_TRY_STATUS(reader.read(roles));
  component_.graphs.front() = reader.take();
  return {};
}

}  // namespace argosy
