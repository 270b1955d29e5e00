#include "backends/onnx/own_nodes.h"

#include "backends/onnx/kernel_types.h"
#include "backends/onnx/translator.h"
#include "base/text.h"
#include "io/onnx/own_op.h"

namespace argosy::onnx {
namespace {

const std::string* attribute_of(const Program& program, std::string_view op) {
  auto found = program.attributes.find(format("{}{}", kOwnOpAttribute, op));
  return found == program.attributes.end() ? nullptr : &found->second;
}

/// The arguments of a node, one after the other.
class OwnNode {
 public:
  explicit OwnNode(const NodeTranslator& e) : e_(e) {}

  void add(const SchemaArgument& schema, const Argument& given) {
    const std::string& name = schema.name;
    const bool is_tensor = schema.type.kind == SchemaKind::kTensor;
    if (is_tensor && schema.type.is_list) {
      for (Ref each : e_.tensors(name)) inputs_.push_back(each);
    } else if (is_tensor) {
      inputs_.push_back(e_.tensor(name));
    } else if (const ValueId* value = given.get_if<ValueId>(); value != nullptr && e_.is_tensor(*value)) {
      inputs_.push_back(e_.tensor(*value));  // where a number was asked for
    } else if (const bool* flag = given.get_if<bool>()) {
      attributes_.push_back({name, int64_t{*flag ? 1 : 0}});
    } else if (const double* number = given.get_if<double>()) {
      attributes_.push_back({name, static_cast<float>(*number)});
    } else if (given.is<int64_t>() || given.is<ValueId>()) {
      attributes_.push_back({name, e_.integer(name)});
    } else if (const std::string* text = given.get_if<std::string>()) {
      attributes_.push_back({name, *text});
    } else if (const DType* dtype = given.get_if<DType>()) {
      attributes_.push_back({name, int64_t{onnx_type(*dtype)}});
    } else if (given.is<IntList>()) {
      attributes_.push_back({name, e_.integers(name)});
    } else if (const BoolList* flags = given.get_if<BoolList>()) {
      attributes_.push_back({name, Ints(flags->begin(), flags->end())});
    } else if (const DoubleList* numbers = given.get_if<DoubleList>()) {
      attributes_.push_back({name, std::vector<float>(numbers->begin(), numbers->end())});
    } else if (const StringList* texts = given.get_if<StringList>()) {
      attributes_.push_back({name, *texts});
    } else if (!given.is<None>() && !given.is<Device>()) {
      e_.decline(format("argument {} is of a kind that no attribute of ONNX has", name),
                 "leave it out of the op that becomes a node");
    }
  }

  void yield(const OwnOp& own) {
    while (!inputs_.empty() && !inputs_.back().is_valid()) inputs_.pop_back();
    std::vector<DType> dtypes;
    for (size_t i = 0; i < e_.result_count(); ++i) {
      if (!e_.is_tensor(e_.result_id(i)))
        e_.decline("a result is no tensor", "a node of ONNX has tensors as its outputs: return those alone");
      dtypes.push_back(e_.result(i).dtype);
    }
    auto [known, is_new] = e_.builder().model().domains.try_emplace(own.domain, own.version);
    if (!is_new && known->second != own.version)
      e_.decline(format("domain {} has version {} and {} at once", own.domain, known->second, own.version));
    e_.yield(e_.builder().typed_node(format("{}.{}", own.domain, own.name), std::move(inputs_), dtypes,
                                     std::move(attributes_)));
  }

 private:
  const NodeTranslator& e_;
  Refs inputs_;
  Attributes attributes_;
};

void emit_own_node(const NodeTranslator& e, const Translation&) {
  const Program& program = e.translator().program();
  const argosy::Node& node = e.translator().graph()[e.node_id()];
  const OpSchema& schema = program.schemas[node.op];
  auto own = parse_own_op(*attribute_of(program, schema.name));
  if (!own) e.decline(own.error().message);
  OwnNode made(e);
  for (size_t i = 0; i < schema.arguments.size(); ++i) made.add(schema.arguments[i], node.arguments[i]);
  made.yield(*own);
}

constexpr Translation kOwn = {{}, emit_own_node};

}  // namespace

const Translation* own_translation(const Program& program, std::string_view op) {
  return attribute_of(program, op) == nullptr ? nullptr : &kOwn;
}

}  // namespace argosy::onnx
