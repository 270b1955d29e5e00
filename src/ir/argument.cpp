#include "ir/argument.h"

#include <bit>

namespace argosy {
namespace {

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

bool same_bits(const DoubleList& a, const DoubleList& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) return false;
  }
  return true;
}

// `Arg` and `Id` are const or not alike.
template <class Arg, class Visit>
void visit_values(Arg& argument, uint32_t& item, const Visit& visit) {
  if (auto* value = argument.template get_if<ValueId>()) {
    if (value->is_valid()) visit(*value, item);
    ++item;
  } else if (auto* values = argument.template get_if<ValueList>()) {
    for (auto& id : *values) {
      if (id.is_valid()) visit(id, item);
      ++item;
    }
  } else if (auto* integers = argument.template get_if<IntList>()) {
    for (auto& entry : *integers) {
      if (auto* id = std::get_if<ValueId>(&entry)) visit(*id, item);
      ++item;
    }
  } else if (auto* list = argument.template get_if<ArgumentList>()) {
    for (auto& entry : list->items) visit_values(entry, item, visit);
  } else {
    ++item;
  }
}

}  // namespace

bool operator==(const ArgumentList& a, const ArgumentList& b) { return a.items == b.items; }

bool operator==(const Argument& a, const Argument& b) {
  if (a.index() != b.index()) return false;
  if (auto* x = a.get_if<double>()) return same_bits(*x, *b.get_if<double>());
  if (auto* x = a.get_if<DoubleList>()) return same_bits(*x, *b.get_if<DoubleList>());
  if (auto* x = a.get_if<std::complex<double>>()) {
    auto* y = b.get_if<std::complex<double>>();
    return same_bits(x->real(), y->real()) && same_bits(x->imag(), y->imag());
  }
  return a.variant() == b.variant();
}

void for_each_value(Argument& argument, const std::function<void(ValueId&, uint32_t)>& visit) {
  uint32_t item = 0;
  visit_values(argument, item, visit);
}

void for_each_value(const Argument& argument, const std::function<void(ValueId, uint32_t)>& visit) {
  uint32_t item = 0;
  visit_values(argument, item, visit);
}

}  // namespace argosy
