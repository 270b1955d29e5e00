// Kernels for the ops of language models that programs for text generation call, llama::update_cache and
// llama::custom_sdpa: the SDK has no library of them that works without Python. fp32.
//
// Tensors are [batch, tokens, heads, size of a head]; a cache has room for all positions in place of tokens. Queries
// may have more heads than keys, in equal groups.
#include <executorch/extension/kernel_util/make_boxed_from_unboxed_functor.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/kernel/kernel_includes.h>
#include <executorch/runtime/kernel/thread_parallel_interface.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

namespace {

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::Error;
using executorch::runtime::KernelRuntimeContext;

/// Writes `value` into the cache, from position `start` on. What the op returns is the cache, which nobody reads.
Tensor& update_cache(KernelRuntimeContext& context, const Tensor& value, Tensor& cache, int64_t start, Tensor& out) {
  bool fits = value.dim() == 4 && cache.dim() == 4 && value.scalar_type() == cache.scalar_type() &&
              value.size(0) == cache.size(0) && value.size(2) == cache.size(2) && value.size(3) == cache.size(3) &&
              start >= 0 && start + value.size(1) <= cache.size(1);
  if (!fits) {
    context.fail(Error::InvalidArgument);
    return out;
  }
  size_t row = static_cast<size_t>(value.size(2) * value.size(3)) * value.element_size();
  auto tokens = static_cast<size_t>(value.size(1)), room = static_cast<size_t>(cache.size(1));
  const auto* from = static_cast<const char*>(value.const_data_ptr());
  auto* to = static_cast<char*>(cache.mutable_data_ptr());
  for (int64_t batch = 0; batch < value.size(0); ++batch) {
    std::memcpy(to + (static_cast<size_t>(batch) * room + static_cast<size_t>(start)) * row,
                from + static_cast<size_t>(batch) * tokens * row, tokens * row);
  }
  return out;
}

float dot(const float* a, const float* b, int64_t size) {
  float sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

/// What is known of one query after some keys: softmax over all of them is never held (as in flash attention).
struct Query {
  const float* query;
  const float* mask;  // of its token, or null
  int64_t keys;       // how many it sees
  float* sum;         // of values so far, weighted; the result's own memory
  float largest = -std::numeric_limits<float>::infinity();
  float weight = 0;
};

// So many keys and values of a head stay in the cache of a core while queries pass over them.
constexpr int64_t kKeysAtOnce = 64;

/// One more block of keys for one query.
void attend(Query& query, const float* keys, const float* values, int64_t first, int64_t count, int64_t stride,
            int64_t size, float scale) {
  count = std::min(count, query.keys - first);
  if (count <= 0) return;
  float scores[kKeysAtOnce];
  float largest = query.largest;
  for (int64_t i = 0; i < count; ++i) {
    scores[i] = dot(query.query, keys + i * stride, size) * scale;
    if (query.mask != nullptr) scores[i] += query.mask[first + i];
    largest = std::max(largest, scores[i]);
  }
  if (largest == -std::numeric_limits<float>::infinity()) return;
  if (largest > query.largest) {
    float shrink = std::exp(query.largest - largest);  // 0 the first time
    query.weight *= shrink;
    for (int64_t i = 0; i < size; ++i) query.sum[i] *= shrink;
    query.largest = largest;
  }
  for (int64_t k = 0; k < count; ++k) {
    float weight = std::exp(scores[k] - largest);
    if (weight == 0) continue;
    query.weight += weight;
    const float* value = values + k * stride;
    for (int64_t i = 0; i < size; ++i) query.sum[i] += weight * value[i];
  }
}

/// Attention of queries, the first of which is at position `start`, to what the caches hold up to the last of them, or
/// to all keys with a mask (added, [tokens, keys]).
Tensor& custom_sdpa(KernelRuntimeContext& context, const Tensor& query, const Tensor& key, const Tensor& value,
                    int64_t start, std::optional<Tensor> mask, double /*dropout*/, bool is_causal,
                    std::optional<double> scale, Tensor& out) {
  bool fits = query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && start >= 0;
  for (const Tensor* each : {&query, &key, &value}) fits = fits && each->scalar_type() == ScalarType::Float;
  int64_t keys = !fits ? 0 : mask ? key.size(1) : start + query.size(1);
  fits = fits && key.size(2) > 0 && query.size(2) % key.size(2) == 0 && query.size(3) == key.size(3) &&
         key.size(3) == value.size(3) && query.size(0) == key.size(0) && query.size(0) == value.size(0) &&
         key.size(2) == value.size(2) && keys <= key.size(1) && keys <= value.size(1);
  if (mask) {
    fits = fits && !is_causal && mask->dim() == 2 && mask->scalar_type() == ScalarType::Float &&
           mask->size(0) == query.size(1) && mask->size(1) >= keys;
  }
  if (!fits || executorch::runtime::resize_tensor(out, query.sizes()) != Error::Ok) {
    context.fail(Error::InvalidArgument);
    return out;
  }
  int64_t tokens = query.size(1), heads = query.size(2), size = query.size(3), key_heads = key.size(2);
  int64_t group = heads / key_heads, stride = key_heads * size;
  auto factor = static_cast<float>(scale ? *scale : 1 / std::sqrt(static_cast<double>(size)));
  auto work = [&](int64_t begin, int64_t end) {
    std::vector<Query> queries(static_cast<size_t>(tokens * group));
    for (int64_t each = begin; each < end; ++each) {
      int64_t batch = each / key_heads, head = each % key_heads;
      const float* all_keys = key.const_data_ptr<float>() + batch * key.size(1) * stride + head * size;
      const float* all_values = value.const_data_ptr<float>() + batch * value.size(1) * stride + head * size;
      for (int64_t token = 0; token < tokens; ++token) {
        for (int64_t i = 0; i < group; ++i) {
          int64_t place = ((batch * tokens + token) * heads + head * group + i) * size;
          Query& one = queries[static_cast<size_t>(token * group + i)];
          one = {query.const_data_ptr<float>() + place, nullptr, is_causal ? std::min(keys, start + token + 1) : keys,
                 out.mutable_data_ptr<float>() + place};
          if (mask) one.mask = mask->const_data_ptr<float>() + token * mask->size(1);
          std::fill_n(one.sum, size, 0.F);
        }
      }
      for (int64_t first = 0; first < keys; first += kKeysAtOnce) {
        for (Query& one : queries) {
          attend(one, all_keys + first * stride, all_values + first * stride, first, kKeysAtOnce, stride, size, factor);
        }
      }
      for (Query& one : queries) {
        float inverse = one.weight > 0 ? 1 / one.weight : 0;
        for (int64_t i = 0; i < size; ++i) one.sum[i] *= inverse;
      }
    }
  };
  executorch::extension::parallel_for(0, query.size(0) * key_heads, 1, work);
  return out;
}

}  // namespace

EXECUTORCH_LIBRARY(llama, "update_cache.out", update_cache);
EXECUTORCH_LIBRARY(llama, "custom_sdpa.out", custom_sdpa);
