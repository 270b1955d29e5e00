#pragma once

#include "tensor/source.h"

namespace argosy {

/// What is added to sums of products of integers: i32, each with the scale of its sum.
struct QuantizedBias {
  TensorSourcePtr
      values;  // i32, the nearest integer of bias / scale; what fits no i32 becomes the nearest one that does
  TensorSourcePtr scales;  // f32: weight_scales * input_scale
};

/// `bias` (a float) and `weight_scales` (f32) have one dim of equal size. Reading a NaN or an infinity is an error.
Result<QuantizedBias> quantized_bias(const TensorSourcePtr& bias, const TensorSourcePtr& weight_scales,
                                     float input_scale);

}  // namespace argosy
