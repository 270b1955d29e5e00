// Rules for ops, over the C functions of the shared library. Compiled as client.cpp.
#include "client_rules.h"

#include <string>

namespace argosy {
namespace {

/// Ends a rule that asked for something that it cannot have. The library has the error.
struct Refused {};

class AskingGraph final : public OpGraph {
 public:
  AskingGraph(void* graph, ArgosyAsk* function) : graph_(graph), ask_(function) {}

  bool has(std::string_view argument) const override { return number_of(ArgosyQuestionKind::kHas, argument) != 0; }
  OpTensor tensor(std::string_view argument) const override {
    return handle(number_of(ArgosyQuestionKind::kTensor, argument));
  }
  std::vector<OpTensor> tensors(std::string_view argument) const override {
    std::vector<OpTensor> all;
    for (double each : ask(ArgosyQuestionKind::kTensors, argument).numbers) all.push_back(handle(each));
    return all;
  }
  double number(std::string_view argument) const override { return number_of(ArgosyQuestionKind::kNumber, argument); }
  std::vector<double> numbers(std::string_view argument) const override {
    return ask(ArgosyQuestionKind::kNumbers, argument).numbers;
  }
  std::string text(std::string_view argument) const override { return ask(ArgosyQuestionKind::kText, argument).text; }
  size_t rank(OpTensor tensor) const override {
    return static_cast<size_t>(ask(ArgosyQuestionKind::kRank, "", {tensor}).numbers.at(0));
  }
  OpTensor call(std::string_view function, const std::vector<OpTensor>& operands,
                const std::vector<double>& numbers) override {
    return handle(ask(ArgosyQuestionKind::kCall, function, operands, numbers).numbers.at(0));
  }
  void replace(const std::vector<OpTensor>& results) override { ask(ArgosyQuestionKind::kReplace, "", results); }

 private:
  struct Answer {
    std::vector<double> numbers;
    std::string text;
  };

  static OpTensor handle(double number) { return {static_cast<uint32_t>(number)}; }

  double number_of(ArgosyQuestionKind kind, std::string_view argument) const {
    return ask(kind, argument).numbers.at(0);
  }

  Answer ask(ArgosyQuestionKind kind, std::string_view text, const std::vector<OpTensor>& tensors = {},
             const std::vector<double>& numbers = {}) const {
    const std::string name(text);
    std::vector<uint32_t> ids;
    for (OpTensor each : tensors) ids.push_back(each.id);
    const ArgosyQuestion question{kind, name.c_str(), ids.data(), ids.size(), numbers.data(), numbers.size()};
    Answer answer;
    const ArgosyOpAnswer to{
        &answer, [](void* self, double number) { static_cast<Answer*>(self)->numbers.push_back(number); },
        [](void* self, const char* said, size_t size) { static_cast<Answer*>(self)->text.assign(said, size); }};
    if (!ask_(graph_, &question, &to)) throw Refused();
    return answer;
  }

  void* graph_;
  ArgosyAsk* ask_;
};

}  // namespace

bool LibraryRules::write(void* self, void* graph, ArgosyAsk* ask) {
  const auto& written = *static_cast<Written*>(self);
  try {
    AskingGraph asking(graph, ask);
    written.rule->write(asking);
    return true;
  } catch (const Refused&) {
  } catch (...) {
    *written.thrown = std::current_exception();
  }
  return false;
}

LibraryRules::LibraryRules(const std::vector<OpRule>& rules, std::exception_ptr& thrown) {
  for (const OpRule& rule : rules) {
    // One without a function is refused by the library, which names it.
    written_.push_back({&rule, &thrown});
    list_.push_back({rule.op.c_str(), &written_.back(), rule.write ? write : nullptr});
  }
}

}  // namespace argosy
