#include <algorithm>

#include "base/text.h"
#include "frontends/capture/weight_plan.h"
#include "tensor/dequantize.h"
#include "tensor/merge.h"
#include "tensor/sha256.h"

namespace argosy {
namespace {

Result<TensorSourcePtr> run_step(const PlanStep& step, const std::vector<TensorSourcePtr>& values) {
  const TensorSourcePtr& input = values[step.inputs[0]];
  switch (step.op) {
    case PlanOp::kStack:
    case PlanOp::kConcat: {
      std::vector<TensorSourcePtr> parts;
      parts.reserve(step.inputs.size());
      for (uint32_t number : step.inputs) parts.push_back(values[number]);
      return step.op == PlanOp::kStack ? stacked(std::move(parts), step.dim) : concatenated(std::move(parts), step.dim);
    }
    case PlanOp::kSlice: return sliced(input, step.dim, step.start, step.length);
    case PlanOp::kTranspose: return transposed(input, step.order);
    case PlanOp::kReshape: return reshaped(input, step.shape);
    case PlanOp::kCast: return converted(input, step.dtype);
    case PlanOp::kBitcast: return reinterpreted(input, step.dtype);
    case PlanOp::kGather: return gathered(input, values[step.inputs[1]]);
    case PlanOp::kAddProduct:
      return product_added(input, values[step.inputs[1]], values[step.inputs[2]], static_cast<float>(step.scale));
    case PlanOp::kAffine:
      return affine(input, static_cast<float>(step.scale), static_cast<float>(step.offset), step.dtype);
    case PlanOp::kDequantize: break;
  }
  TensorSourcePtr zero_points = step.inputs.size() > 2 ? values[step.inputs[2]] : nullptr;
  return dequantized(input, values[step.inputs[1]], std::move(zero_points),
                     {step.block, step.zero, step.modulus, step.dtype});
}

Result<TensorSourcePtr> from_sources(const PlannedWeight& weight, const WeightPlan::Lookup& lookup) {
  std::vector<TensorSourcePtr> values;
  values.reserve(weight.sources.size() + weight.steps.size());
  for (const std::string& name : weight.sources) {
    ARGOSY_TRY(TensorSourcePtr source, lookup(name));
    values.push_back(std::move(source));
  }
  for (const PlanStep& step : weight.steps) {
    ARGOSY_TRY(TensorSourcePtr value, run_step(step, values));
    values.push_back(std::move(value));
  }
  const TensorSourcePtr& result = values.back();
  if (result->dtype() != weight.dtype || !std::ranges::equal(result->shape(), weight.shape)) {
    return fail(ErrorCode::kInvalidInput,
                format("the steps give {}, the plan promises {}", tensor_text(result->dtype(), result->shape()),
                       tensor_text(weight.dtype, weight.shape)),
                "plan the weights of this checkpoint again");
  }
  return result;
}

Result<TensorSourcePtr> make_source(const PlannedWeight& weight, const WeightPlan::Lookup& lookup) {
  if (weight.origin == PlanOrigin::kSources) return from_sources(weight, lookup);
  if (weight.origin == PlanOrigin::kBytes) return literal(weight.bytes, weight.dtype, weight.shape);
  ARGOSY_TRY(int64_t total, checked_tensor_bytes(weight.dtype, weight.shape));
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<size_t>(total));
  while (bytes.size() < static_cast<size_t>(total)) {
    bytes.insert(bytes.end(), weight.bytes.begin(), weight.bytes.end());
  }
  return literal(std::move(bytes), weight.dtype, weight.shape);
}

/// What plans depend on beside name, dtype and shape, as a tab and its hash: the bytes of tensors that hold settings,
/// and the name of a GGUF file's blocks. What cannot be read gets a text that no plan has.
std::string settings_text(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  if (tensor.format != BlockFormat::kNone)
    return "\t" + sha256_hex(std::as_bytes(std::span(layout_of(tensor.format).name)));
  constexpr uint64_t kMaxSettings = uint64_t{64} << 10;
  bool is_named_so =
      tensor.name.find(".quant_state.bitsandbytes__") != std::string::npos || tensor.name.ends_with(".weight_format");
  bool are_settings = is_named_so && tensor.dtype == DType::kU8 && tensor.bytes <= kMaxSettings;
  if (!are_settings) return "";
  std::vector<std::byte> bytes;
  ByteSink sink = [&](std::span<const std::byte> more) -> Status {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return {};
  };
  Result<TensorSourcePtr> source = checkpoint.tensor(tensor.name);
  bool is_read = source && (*source)->stream_to(sink, 4 * kMaxSettings);
  return is_read ? "\t" + sha256_hex(bytes) : "\t?";
}

}  // namespace

std::string headers_hash(const Checkpoint& checkpoint) {
  std::string text;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    std::vector<std::string> dims;
    dims.reserve(tensor.shape.size());
    for (int64_t dim : tensor.shape) dims.push_back(format("{}", dim));
    text += format("{}\t{}\t{}{}\n", tensor.name, to_text(tensor.dtype), join(dims, ","),
                   settings_text(checkpoint, tensor));
  }
  return sha256_hex(std::as_bytes(std::span(text)));
}

Result<std::vector<TensorSourcePtr>> WeightPlan::sources(const Checkpoint& checkpoint) const {
  if (headers_hash(checkpoint) != checkpoint_hash_) {
    return fail(ErrorCode::kInvalidInput, "the weight plan was made for a checkpoint of other names, dtypes or shapes",
                "plan the weights of this checkpoint: python -m argosy.capture.weight_plan");
  }
  return sources([&](const std::string& name) { return checkpoint.tensor(name); });
}

Result<std::vector<TensorSourcePtr>> WeightPlan::sources(const Lookup& lookup) const {
  std::vector<TensorSourcePtr> sources(weights_.size());
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].origin == PlanOrigin::kTied) continue;
    Result<TensorSourcePtr> source = make_source(weights_[i], lookup);
    if (!source) return fail(std::move(source.error().in(format("weight {}", quoted(weights_[i].name)))));
    sources[i] = *std::move(source);
  }
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].origin != PlanOrigin::kTied) continue;
    sources[i] = sources[static_cast<size_t>(find(weights_[i].tied_to) - weights_.data())];
  }
  return sources;
}

}  // namespace argosy
