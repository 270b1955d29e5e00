// Any bytes as a weight plan: refused or read. What is read is replayed on three small tensors; weights that come out
// have the dtype and shape that the plan promises, and as many bytes as these take.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "frontends/capture/weight_plan.h"

namespace {

using namespace argosy;

void require(bool condition) {
  if (!condition) std::abort();
}

Result<TensorSourcePtr> tensor(const std::string& name) {
  if (name == "a" || name == "b") return literal(std::vector<std::byte>(24 * 4), DType::kF32, {4, 6});
  if (name == "c") return literal(std::vector<std::byte>(6), DType::kU8, {6});
  return fail(ErrorCode::kNotFound, "no such tensor");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kMaxStreamed = 1 << 20;
  auto plan = WeightPlan::parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!plan) return 0;
  auto sources = plan->sources(WeightPlan::Lookup(tensor));
  if (!sources) return 0;
  require(sources->size() == plan->weights().size());
  for (size_t i = 0; i < sources->size(); ++i) {
    const PlannedWeight& weight = plan->weights()[i];
    const TensorSource& source = *sources->at(i);
    require(source.dtype() == weight.dtype && std::ranges::equal(source.shape(), weight.shape));
    require(plan->find(weight.name) == &weight);
    if (source.bytes() > kMaxStreamed) continue;
    int64_t streamed = 0;
    auto status = source.stream_to(
        [&](std::span<const std::byte> bytes) -> Status {
          streamed += static_cast<int64_t>(bytes.size());
          return {};
        },
        1 << 16);
    require(!status || streamed == source.bytes());
  }
  return 0;
}
