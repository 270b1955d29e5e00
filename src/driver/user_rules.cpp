#include "driver/user_rules.h"

#include <array>
#include <cmath>
#include <set>

#include "base/text.h"
#include "ir/schema.h"
#include "passes/aten_builder.h"

namespace argosy {
namespace {

using Operands = std::vector<ValueId>;
using Numbers = std::vector<double>;

int64_t dim(double number) { return static_cast<int64_t>(number); }

/// What OpGraph::call() knows, by name and by how many operands and numbers it takes.
struct Function {
  std::string_view name;
  size_t operands, numbers;  // operands: 0 is any number from one on
  ValueId (*apply)(AtenBuilder&, const Operands&, const Numbers&);
};

template <ValueId (AtenBuilder::*unary)(ValueId)>
ValueId of_one(AtenBuilder& b, const Operands& x, const Numbers&) {
  return (b.*unary)(x[0]);
}

template <ValueId (AtenBuilder::*binary)(ValueId, ValueId)>
ValueId of_two(AtenBuilder& b, const Operands& x, const Numbers&) {
  return (b.*binary)(x[0], x[1]);
}

template <ValueId (AtenBuilder::*scaled)(ValueId, double)>
ValueId with_number(AtenBuilder& b, const Operands& x, const Numbers& n) {
  if (kind_of(b.dtype(x[0])) != DTypeKind::kFloat)
    AtenBuilder::refuse("a number is combined with a tensor of integers");
  return (b.*scaled)(x[0], n[0]);
}

ValueId softmax(AtenBuilder& b, const Operands& x, const Numbers& n) { return b.softmax(x[0], dim(n[0])); }
ValueId sum(AtenBuilder& b, const Operands& x, const Numbers& n) { return b.sum(x[0], {dim(n[0])}, true); }
ValueId mean(AtenBuilder& b, const Operands& x, const Numbers& n) { return b.mean(x[0], {dim(n[0])}, true); }
ValueId amax(AtenBuilder& b, const Operands& x, const Numbers& n) { return b.amax(x[0], {dim(n[0])}, true); }
ValueId transpose(AtenBuilder& b, const Operands& x, const Numbers& n) {
  return b.transpose(x[0], dim(n[0]), dim(n[1]));
}
ValueId cat(AtenBuilder& b, const Operands& x, const Numbers& n) { return b.cat(x, dim(n[0])); }

constexpr std::array kFunctions = {
    Function{"add", 2, 0, of_two<&AtenBuilder::add>},
    Function{"sub", 2, 0, of_two<&AtenBuilder::sub>},
    Function{"mul", 2, 0, of_two<&AtenBuilder::mul>},
    Function{"div", 2, 0, of_two<&AtenBuilder::div>},
    Function{"matmul", 2, 0, of_two<&AtenBuilder::matmul>},
    Function{"add", 1, 1, with_number<&AtenBuilder::add>},
    Function{"mul", 1, 1, with_number<&AtenBuilder::mul>},
    Function{"div", 1, 1, with_number<&AtenBuilder::div>},
    Function{"exp", 1, 0, of_one<&AtenBuilder::exp>},
    Function{"log", 1, 0, of_one<&AtenBuilder::log>},
    Function{"sqrt", 1, 0, of_one<&AtenBuilder::sqrt>},
    Function{"rsqrt", 1, 0, of_one<&AtenBuilder::rsqrt>},
    Function{"sigmoid", 1, 0, of_one<&AtenBuilder::sigmoid>},
    Function{"tanh", 1, 0, of_one<&AtenBuilder::tanh>},
    Function{"neg", 1, 0, of_one<&AtenBuilder::neg>},
    Function{"abs", 1, 0, of_one<&AtenBuilder::abs>},
    Function{"softmax", 1, 1, softmax},
    Function{"sum", 1, 1, sum},
    Function{"mean", 1, 1, mean},
    Function{"amax", 1, 1, amax},
    Function{"transpose", 1, 2, transpose},
    Function{"cat", 0, 1, cat},
};

class RuleGraph final : public OpGraph {
 public:
  explicit RuleGraph(AtenBuilder& builder) : builder_(builder) {}

  bool is_replaced() const { return is_replaced_; }

  bool has(std::string_view argument) const override { return builder_.has(argument); }

  OpTensor tensor(std::string_view argument) const override {
    const ValueId* value = known(argument).get_if<ValueId>();
    if (value == nullptr) refuse(argument, "a tensor");
    return handle(*value);
  }

  std::vector<OpTensor> tensors(std::string_view argument) const override {
    const ValueList* values = known(argument).get_if<ValueList>();
    if (values == nullptr) refuse(argument, "a list of tensors");
    std::vector<OpTensor> all;
    for (ValueId each : *values) all.push_back(handle(each));
    return all;
  }

  double number(std::string_view argument) const override {
    if (const bool* flag = known(argument).get_if<bool>()) return *flag ? 1 : 0;
    auto number = builder_.number(argument);
    if (!number) refuse(argument, "a number that is not computed");
    return *number;
  }

  std::vector<double> numbers(std::string_view argument) const override {
    const Argument& given = known(argument);
    if (const DoubleList* list = given.get_if<DoubleList>()) return *list;
    auto integers = argosy::numbers(given);
    if (!integers) refuse(argument, "a list of numbers that are not computed");
    return {integers->begin(), integers->end()};
  }

  std::string text(std::string_view argument) const override {
    const std::string* value = known(argument).get_if<std::string>();
    if (value == nullptr) refuse(argument, "a text");
    return *value;
  }

  size_t rank(OpTensor tensor) const override { return builder_.rank(value(tensor)); }

  OpTensor call(std::string_view function, const std::vector<OpTensor>& operands, const Numbers& numbers) override {
    Operands values;
    for (OpTensor each : operands) values.push_back(value(each));
    for (const Function& each : kFunctions) {
      const bool fits = each.operands == 0 ? !values.empty() : each.operands == values.size();
      if (each.name != function || !fits || each.numbers != numbers.size()) continue;
      check_dims(each, values, numbers);
      return handle(each.apply(builder_, values, numbers));
    }
    AtenBuilder::refuse(
        format("there is no function {} of {} tensors and {} numbers", quoted(function), values.size(), numbers.size()),
        "argosy/extension.h lists those that there are");
  }

  void replace(const std::vector<OpTensor>& results) override {
    if (is_replaced_) AtenBuilder::refuse("the rule replaces its node twice");
    if (results.size() != builder_.output_count())
      AtenBuilder::refuse(
          format("the node has {} results, and the rule gives {}", builder_.output_count(), results.size()));
    Operands values;
    for (size_t i = 0; i < results.size(); ++i) {
      values.push_back(value(results[i]));
      if (builder_.rank(values[i]) != builder_.result(i).shape.size())
        AtenBuilder::refuse(format("result {} has {} dims, and the rule gives one of {}", i,
                                   builder_.result(i).shape.size(), builder_.rank(values[i])));
    }
    is_replaced_ = true;
    builder_.replace(values);
  }

 private:
  [[noreturn]] void refuse(std::string_view argument, std::string_view wanted) const {
    AtenBuilder::refuse(format("argument {} of {} is not {}", argument, builder_.op(), wanted));
  }

  const Argument& known(std::string_view argument) const {
    if (!builder_.knows(argument))
      AtenBuilder::refuse(format("{} has no argument {}", builder_.op(), quoted(argument)));
    return builder_.argument(argument);
  }

  // What a rule hands out again may be anything.
  ValueId value(OpTensor tensor) const {
    if (!handed_out_.contains(tensor.id)) AtenBuilder::refuse("a tensor that the rule was not given");
    return ValueId{tensor.id};
  }

  OpTensor handle(ValueId value) const {
    if (!value.is_valid()) AtenBuilder::refuse("a tensor is None", "ask has() first");
    if (builder_.graph()[value].tensor() == nullptr) AtenBuilder::refuse("a number that is computed is no tensor");
    handed_out_.insert(value.index);
    return {value.index};
  }

  void check_dims(const Function& function, const Operands& operands, const Numbers& numbers) const {
    if (function.apply == with_number<&AtenBuilder::add> || function.numbers == 0) return;
    if (function.name == "mul" || function.name == "div") return;
    for (double number : numbers) {
      const auto rank = static_cast<double>(builder_.rank(operands[0]));
      if (number != std::floor(number) || number < -rank || number >= rank)
        AtenBuilder::refuse(format("{} has no dim {}: the tensor has {}", function.name, number, rank));
    }
  }

  AtenBuilder& builder_;
  mutable std::set<uint32_t> handed_out_;
  bool is_replaced_ = false;
};

Result<bool> apply(const OpRule& rule, RuleContext& context) {
  return or_refused([&]() -> Result<bool> {
    AtenBuilder builder(context);
    RuleGraph graph(builder);
    rule.write(graph);
    if (!graph.is_replaced()) AtenBuilder::refuse("the rule does not replace its node", "end it with replace()");
    return true;
  });
}

}  // namespace

Result<std::shared_ptr<const RuleTable>> user_rules(std::span<const OpRule> rules) {
  if (rules.empty()) return nullptr;
  auto table = std::make_shared<RuleTable>(std::span<const std::span<const RewriteRule>>());
  std::set<std::string> ops;
  for (const OpRule& rule : rules) {
    const size_t colons = rule.op.find("::");
    if (colons == 0 || colons == std::string::npos || colons + 2 == rule.op.size() || !rule.write) {
      return fail(ErrorCode::kInvalidInput, format("{} is no op with a rule", quoted(rule.op)),
                  "name it as torch.library does, \"mylib::gate\", and give a function");
    }
    if (rule.op.starts_with("aten::"))
      return fail(ErrorCode::kInvalidInput, format("{} is PyTorch's, and has its rules", quoted(rule.op)));
    if (!ops.insert(op_name_of(rule.op)).second)
      return fail(ErrorCode::kInvalidInput, format("{} has two rules", quoted(rule.op)), "remove one of the two");
    ARGOSY_TRY_STATUS(table->add(op_name_of(rule.op), format("of {}", rule.op),
                                 [rule](RuleContext& context) { return apply(rule, context); }));
  }
  return std::shared_ptr<const RuleTable>(std::move(table));
}

Pipeline after_rules(const std::shared_ptr<const RuleTable>& rules, Pipeline pipeline) {
  if (rules == nullptr) return pipeline;
  Pipeline all;
  all.add(apply_rules("apply-rules-of-a-user", rules));
  for (const Pass& pass : pipeline.passes()) all.add(pass);
  return all;
}

}  // namespace argosy
