#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/onnx/document.h"
#include "base/result.h"

namespace argosy::onnx {

/// Values that came nearer to the largest number of f16, 65504, stay f32: other inputs may be a few times as large.
inline constexpr double kLargestSeen = 65504.0 / 8;

/// How a node computes, and why.
enum class Precision : uint8_t {
  kOther,      // it has no say: norms, softmax, sums over dims, integers
  kHalf,       // in f16
  kStructure,  // in f32: what reads it, or what it reads, is f32
  kWeight,     // in f32: a weight or constant does not fit into f16
  kValue,      // in f32: a value was seen that hardly fits
  kUnseen,     // in f32: it is in a sub-graph, where values cannot be seen
};

/// Which nodes of a model compute in f16.
struct HalfPlan {
  std::vector<std::vector<Precision>> nodes;  // by graph and node
  std::map<Precision, size_t> products;       // how many of the products there are of each kind
  double largest = 0;                         // of values that kValue is for, with the node's place in the model
  std::string largest_at;

  Precision of(size_t graph, size_t node) const { return nodes[graph][node]; }
  size_t count(Precision precision) const;
};

/// Plans by structure, by the values of weights, and by magnitudes of values where there are any (`seen`, by names as
/// name_model() gives them; null: structure and weights alone). A value of the model's own graph that `seen` lacks is
/// an error. Reads the weights of products that are not f16 already.
///
/// Products with weights, and products of what was not given by callers, are f16: their cost is the model's. Ops on
/// elements are f16 where all that they read is, and all that reads them: so sums that norms read stay f32, and with
/// them the residual stream. Ops that only move values are as what they read. Positions, masks and other numbers that
/// come from integers alone, and angles, stay f32.
Result<HalfPlan> plan_half(const Model& model, const std::map<std::string, double>* seen);

/// The values whose magnitudes plan_half() asks for, in order.
Result<std::vector<Ref>> half_candidates(const Model& model);

/// Whether a value is a tensor of f32.
bool is_single(const Model& model, Ref ref);

}  // namespace argosy::onnx
