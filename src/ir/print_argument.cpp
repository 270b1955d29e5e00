#include "base/text.h"
#include "ir/text_syntax.h"

namespace argosy {
namespace {

/// Writes one argument. A list gets the name of its kind unless the schema's type implies that kind.
class ArgumentPrinter {
 public:
  ArgumentPrinter(std::string& out, const Graph* graph) : out_(out), graph_(graph) {}

  void print(const Argument& argument, const SchemaType& type) {
    type_ = &type;
    std::visit(*this, argument.variant());
  }

  void operator()(None) { out_ += "none"; }
  void operator()(bool value) { out_ += value ? "true" : "false"; }
  void operator()(int64_t value) { out_ += std::to_string(value); }
  void operator()(double value) { out_ += exact_double(value); }
  void operator()(const std::complex<double>& value) {
    out_ += format("complex({}, {})", exact_double(value.real()), exact_double(value.imag()));
  }
  void operator()(const std::string& value) { append_quoted(out_, value); }
  void operator()(DType value) { out_ += format("dtype:{}", to_text(value)); }
  void operator()(const Device& value) {
    out_ += "device:";
    append_word(out_, value.type);
    if (value.index) out_ += format(":{}", *value.index);
  }
  void operator()(TensorLayout value) { out_ += format("layout:{}", name_of(value)); }
  void operator()(MemoryFormat value) { out_ += format("format:{}", name_of(value)); }
  void operator()(ValueId value) {
    if (graph_ == nullptr || !graph_->is_live(value)) {
      out_ += value.is_valid() ? format("%<{}>", value.index) : "%<>";
      return;
    }
    const std::string& name = (*graph_)[value].name;
    out_ += '%';
    if (is_bare_name(name)) {
      out_ += name;
    } else {
      append_quoted(out_, name);
    }
  }
  void operator()(GraphId value) { out_ += format("graph:{}", value.index); }
  void operator()(const IntList& list) {
    print_list(ListKind::kInts, list, [&](const IntItem& item) { std::visit(*this, item); });
  }
  void operator()(const BoolList& list) {
    print_list(ListKind::kBools, list, [&](bool item) { (*this)(item); });
  }
  void operator()(const DoubleList& list) {
    print_list(ListKind::kDoubles, list, [&](double item) { (*this)(item); });
  }
  void operator()(const StringList& list) {
    print_list(ListKind::kStrings, list, [&](const std::string& item) { (*this)(item); });
  }
  void operator()(const ValueList& list) {
    print_list(ListKind::kValues, list, [&](ValueId item) {
      if (item.is_valid()) {
        (*this)(item);
      } else {
        out_ += "none";
      }
    });
  }
  void operator()(const ArgumentList& list) {
    SchemaType item = item_type(*type_);
    print_list(ListKind::kNested, list.items, [&](const Argument& entry) { print(entry, item); });
  }

 private:
  template <class List, class Item>
  void print_list(ListKind kind, const List& list, const Item& item) {
    if (implied_list(*type_) != kind) out_ += name_of(kind);
    out_ += '[';
    bool is_first = true;
    for (const auto& entry : list) {
      if (!is_first) out_ += ", ";
      is_first = false;
      item(entry);
    }
    out_ += ']';
  }

  std::string& out_;
  const Graph* graph_;
  const SchemaType* type_ = nullptr;
};

void append_dims(std::string& out, const SymContext& symbols, const std::vector<SymExpr>& dims) {
  out += '[';
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) out += ", ";
    append_expression(out, symbols, dims[i]);
  }
  out += ']';
}

}  // namespace

void append_argument(std::string& out, const Graph* graph, const Argument& argument, const SchemaType& type) {
  ArgumentPrinter(out, graph).print(argument, type);
}

void append_expression(std::string& out, const SymContext& symbols, SymExpr expression) {
  if (!expression.is_valid()) {
    out += '?';
  } else if (auto integer = expression.as_integer()) {
    out += std::to_string(*integer);
  } else {
    out += symbols.to_text(expression);
  }
}

void append_type(std::string& out, const SymContext& symbols, const ValueType& type) {
  if (const auto* tensor = std::get_if<TensorType>(&type)) {
    out += to_text(tensor->dtype);
    append_dims(out, symbols, tensor->shape);
    if (!tensor->strides.empty()) {
      out += " strides ";
      append_dims(out, symbols, tensor->strides);
    }
    return;
  }
  const auto& number = std::get<SymType>(type);
  switch (number.kind) {
    case SymType::Kind::kInt: out += "int"; break;
    case SymType::Kind::kFloat: out += "float"; break;
    case SymType::Kind::kBool: out += "bool"; break;
  }
  if (number.expression.is_valid()) {
    out += '(';
    append_expression(out, symbols, number.expression);
    out += ')';
  }
}

}  // namespace argosy
