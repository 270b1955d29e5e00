#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/ids.h"
#include "tensor/dtype.h"

namespace argosy {

/// Where a tensor was during the trace. Lowering ignores it; it is kept so that a graph can be written back.
struct Device {
  std::string type;  // "cpu"
  std::optional<int64_t> index;
  friend bool operator==(const Device&, const Device&) = default;
};

enum class TensorLayout : uint8_t { kStrided, kSparseCoo, kSparseCsr, kSparseCsc, kSparseBsr, kSparseBsc, kMkldnn };
enum class MemoryFormat : uint8_t { kContiguous, kChannelsLast, kChannelsLast3d, kPreserve };

struct Argument;

struct None {
  friend bool operator==(None, None) = default;
};

/// A size: a number, or the value of the graph that computes it.
using IntItem = std::variant<int64_t, ValueId>;
using IntList = std::vector<IntItem>;
using BoolList = std::vector<bool>;
using DoubleList = std::vector<double>;
using StringList = std::vector<std::string>;
/// Tensors (or symbolic numbers, for operands of higher-order ops); an invalid id is None.
using ValueList = std::vector<ValueId>;
/// Lists of another kind: nested, or mixed. No ValueId may be inside other than through ValueId and ValueList items.
struct ArgumentList {
  std::vector<Argument> items;
  friend bool operator==(const ArgumentList&, const ArgumentList&);
};

/// One argument of a node, normalised: its alternative follows from the schema's type.
///   Tensor, SymInt/SymFloat/SymBool computed by the graph: ValueId;   Tensor[], Tensor?[]: ValueList
///   int, SymInt: int64_t;  float: double;  bool;  str: std::string;  Scalar: bool, int64_t, double or complex
///   int[], SymInt[]: IntList;  float[]: DoubleList;  bool[]: BoolList;  str[]: StringList
///   a branch or body of a higher-order op: GraphId
using ArgumentVariant =
    std::variant<None, bool, int64_t, double, std::complex<double>, std::string, DType, Device, TensorLayout,
                 MemoryFormat, ValueId, GraphId, IntList, BoolList, DoubleList, StringList, ValueList, ArgumentList>;

struct Argument : ArgumentVariant {
  using ArgumentVariant::ArgumentVariant;
  using ArgumentVariant::operator=;

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(variant());
  }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&variant());
  }
  template <class T>
  T* get_if() {
    return std::get_if<T>(&static_cast<ArgumentVariant&>(*this));
  }
  const ArgumentVariant& variant() const { return *this; }

  /// Bitwise for doubles: NaN equals NaN, 0.0 differs from -0.0.
  friend bool operator==(const Argument& a, const Argument& b);
};

/// Calls `visit(ValueId&, uint32_t item)` for each value that the argument uses, in order; `item` is its position in a
/// list (flattened for nested lists), 0 for a plain value. Invalid ids (None in a list) are passed over but counted.
void for_each_value(Argument& argument, const std::function<void(ValueId&, uint32_t)>& visit);
void for_each_value(const Argument& argument, const std::function<void(ValueId, uint32_t)>& visit);

}  // namespace argosy
