#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// Rules for ops that are no PyTorch's: what they consist of. A rule is called for each node of its op, adds nodes of
/// PyTorch's ops and names the results that take the node's place:
///
///     options.rules.push_back({"mylib::gate", [](argosy::OpGraph& graph) {
///       argosy::OpTensor x = graph.tensor("x");
///       graph.replace({graph.mul(graph.mul(graph.sigmoid(x), x), graph.number("scale"))});
///     }});
namespace argosy {
inline namespace v1 {

/// A tensor of the graph that a rule writes to. It holds for one call of the rule.
struct OpTensor {
  uint32_t id = 0;
};

/// The graph, and the node in it that a rule was called for. Arguments have the names of the op's schema; what the node
/// does not have, or no function can be applied to, ends the export with an error that names the rule and the node.
/// Tensors are broadcast as in PyTorch, dims count from the front or, negative, from behind.
class OpGraph {
 public:
  // ---- the node
  virtual bool has(std::string_view argument) const = 0;  // and it is not None
  virtual OpTensor tensor(std::string_view argument) const = 0;
  virtual std::vector<OpTensor> tensors(std::string_view argument) const = 0;
  virtual double number(std::string_view argument) const = 0;  // also of an int or a bool
  virtual std::vector<double> numbers(std::string_view argument) const = 0;
  virtual std::string text(std::string_view argument) const = 0;
  virtual size_t rank(OpTensor tensor) const = 0;

  // ---- nodes
  /// A node by the name of one of the functions below: their names are those of PyTorch's.
  virtual OpTensor call(std::string_view function, const std::vector<OpTensor>& operands,
                        const std::vector<double>& numbers = {}) = 0;
  OpTensor add(OpTensor a, OpTensor b) { return call("add", {a, b}); }
  OpTensor sub(OpTensor a, OpTensor b) { return call("sub", {a, b}); }
  OpTensor mul(OpTensor a, OpTensor b) { return call("mul", {a, b}); }
  OpTensor div(OpTensor a, OpTensor b) { return call("div", {a, b}); }
  OpTensor matmul(OpTensor a, OpTensor b) { return call("matmul", {a, b}); }
  OpTensor add(OpTensor a, double b) { return call("add", {a}, {b}); }  // of floats, as the next two
  OpTensor mul(OpTensor a, double b) { return call("mul", {a}, {b}); }
  OpTensor div(OpTensor a, double b) { return call("div", {a}, {b}); }
  OpTensor exp(OpTensor x) { return call("exp", {x}); }
  OpTensor log(OpTensor x) { return call("log", {x}); }
  OpTensor sqrt(OpTensor x) { return call("sqrt", {x}); }
  OpTensor rsqrt(OpTensor x) { return call("rsqrt", {x}); }
  OpTensor sigmoid(OpTensor x) { return call("sigmoid", {x}); }
  OpTensor tanh(OpTensor x) { return call("tanh", {x}); }
  OpTensor neg(OpTensor x) { return call("neg", {x}); }
  OpTensor abs(OpTensor x) { return call("abs", {x}); }
  OpTensor softmax(OpTensor x, int64_t dim) { return call("softmax", {x}, {static_cast<double>(dim)}); }
  OpTensor sum(OpTensor x, int64_t dim) { return call("sum", {x}, {static_cast<double>(dim)}); }    // keeps the dim
  OpTensor mean(OpTensor x, int64_t dim) { return call("mean", {x}, {static_cast<double>(dim)}); }  // likewise
  OpTensor amax(OpTensor x, int64_t dim) { return call("amax", {x}, {static_cast<double>(dim)}); }  // likewise
  OpTensor transpose(OpTensor x, int64_t a, int64_t b) {
    return call("transpose", {x}, {static_cast<double>(a), static_cast<double>(b)});
  }
  OpTensor cat(const std::vector<OpTensor>& parts, int64_t dim) {
    return call("cat", parts, {static_cast<double>(dim)});
  }

  /// One tensor for each result of the node. To be called once, last.
  virtual void replace(const std::vector<OpTensor>& results) = 0;

 protected:
  ~OpGraph() = default;
};

struct OpRule {
  std::string op;                       // "mylib::gate", or "mylib::gate.overload"
  std::function<void(OpGraph&)> write;  // what it throws goes to whoever runs the export
};

}  // namespace v1
}  // namespace argosy
