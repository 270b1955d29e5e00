#include "rules.h"

#include <exception>

namespace argosy {
namespace {

/// The graph that a rule is called with, and what a function of it threw: no exception may pass through the program.
struct AskedGraph {
  OpGraph* graph;
  std::exception_ptr thrown;
};

void answer(OpGraph& graph, const ArgosyQuestion& asked, const ArgosyOpAnswer& to) {
  const std::vector<double> numbers(asked.numbers, asked.numbers + asked.number_count);
  std::vector<OpTensor> tensors;
  for (size_t i = 0; i < asked.tensor_count; ++i) tensors.push_back({asked.tensors[i]});
  switch (asked.kind) {
    case ArgosyQuestionKind::kHas: return to.number(to.self, graph.has(asked.text) ? 1 : 0);
    case ArgosyQuestionKind::kTensor: return to.number(to.self, graph.tensor(asked.text).id);
    case ArgosyQuestionKind::kTensors:
      for (OpTensor each : graph.tensors(asked.text)) to.number(to.self, each.id);
      return;
    case ArgosyQuestionKind::kNumber: return to.number(to.self, graph.number(asked.text));
    case ArgosyQuestionKind::kNumbers:
      for (double each : graph.numbers(asked.text)) to.number(to.self, each);
      return;
    case ArgosyQuestionKind::kText: {
      const std::string text = graph.text(asked.text);
      return to.text(to.self, text.data(), text.size());
    }
    case ArgosyQuestionKind::kRank: return to.number(to.self, static_cast<double>(graph.rank(tensors.at(0))));
    case ArgosyQuestionKind::kCall: return to.number(to.self, graph.call(asked.text, tensors, numbers).id);
    case ArgosyQuestionKind::kReplace: return graph.replace(tensors);
  }
}

bool ask(void* self, const ArgosyQuestion* question, const ArgosyOpAnswer* to) {
  auto& asked = *static_cast<AskedGraph*>(self);
  try {
    answer(*asked.graph, *question, *to);
    return true;
  } catch (...) {
    asked.thrown = std::current_exception();
    return false;
  }
}

}  // namespace

OpRule rule_of_program(const ArgosyRule& rule) {
  if (rule.write == nullptr) return {rule.op, nullptr};
  return {rule.op, [rule](OpGraph& graph) {
            AskedGraph asked{&graph, nullptr};
            const bool done = rule.write(rule.self, &asked, ask);
            if (asked.thrown) std::rethrow_exception(asked.thrown);
            if (!done) throw RuleThrew();
          }};
}

}  // namespace argosy
