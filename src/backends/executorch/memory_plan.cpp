#include "backends/executorch/memory_plan.h"

#include <algorithm>
#include <array>
#include <limits>

#include "backends/executorch/pack.h"
#include "base/check.h"
#include "base/text.h"

namespace argosy::executorch {
namespace {

constexpr uint64_t kAlignment = 16;
// No machine has more; sums of so many bytes do not overflow.
constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 46;

struct Life {
  uint32_t first = std::numeric_limits<uint32_t>::max(), last = 0;
  bool is_needed() const { return first <= last; }
  void cover(uint32_t moment) {
    first = std::min(first, moment);
    last = std::max(last, moment);
  }
};

/// When the bytes of each tensor are needed; those of an alias count for the tensor that has them.
class Lives {
 public:
  explicit Lives(const Method& method) : method_(method), lives_(method.values.size()) {
    find_roots();
    for (ValueIndex value : method.inputs) cover(value, 0);
    for (uint32_t i = 0; i < method.instructions.size(); ++i) cover_arguments(i);
    uint32_t end = method.instructions.empty() ? 0 : static_cast<uint32_t>(method.instructions.size() - 1);
    for (ValueIndex value : method.outputs) cover(value, end);
    while (extend()) {
    }
  }

  const Life& operator[](ValueIndex value) const { return lives_[static_cast<size_t>(value)]; }
  ValueIndex root(ValueIndex value) const { return roots_[static_cast<size_t>(value)]; }

 private:
  const Value& value(ValueIndex index) const {
    ARGOSY_CHECK(index >= 0 && static_cast<size_t>(index) < method_.values.size(), "a value's index is out of range");
    return method_.values[static_cast<size_t>(index)];
  }

  void find_roots() {
    roots_.resize(method_.values.size(), kNoValue);
    for (size_t i = 0; i < roots_.size(); ++i) {
      const auto* tensor = std::get_if<Tensor>(&method_.values[i]);
      if (!tensor) continue;
      ValueIndex base = tensor->alias_of;
      ARGOSY_CHECK(base < static_cast<ValueIndex>(i), "an alias stands before what it aliases");
      roots_[i] = base == kNoValue ? static_cast<ValueIndex>(i) : roots_[static_cast<size_t>(base)];
      ARGOSY_CHECK(roots_[i] != kNoValue, "an alias of what is no tensor");
    }
  }

  void cover(ValueIndex index, uint32_t moment) {
    if (index == kNoValue) return;
    if (std::holds_alternative<Tensor>(value(index))) {
      lives_[static_cast<size_t>(root(index))].cover(moment);
    } else if (const auto* list = std::get_if<TensorValues>(&value(index))) {
      for (ValueIndex item : list->items) cover(item, moment);
    }
  }

  void cover_arguments(uint32_t moment) {
    const Instruction& instruction = method_.instructions[moment];
    if (const auto* call = std::get_if<KernelCall>(&instruction)) {
      for (ValueIndex each : call->arguments) cover(each, moment);
    } else if (const auto* delegate = std::get_if<DelegateCall>(&instruction)) {
      for (ValueIndex each : delegate->arguments) cover(each, moment);
    } else if (const auto* move = std::get_if<Move>(&instruction)) {
      cover(move->from, moment);
      cover(move->to, moment);
      if (std::holds_alternative<Tensor>(value(move->from)) && std::holds_alternative<Tensor>(value(move->to))) {
        moves_.push_back({root(move->from), root(move->to)});
      }
    } else {
      const auto& jump = std::get<JumpIfFalse>(instruction);
      cover(jump.condition, moment);
      if (jump.target <= moment) loops_.push_back({jump.target, moment});
    }
  }

  /// Extends lives as moves and loops require; true if one changed.
  bool extend() {
    bool has_changed = false;
    auto cover_more = [&](Life& life, uint32_t moment) {
      if (life.first <= moment && moment <= life.last) return;
      life.cover(moment);
      has_changed = true;
    };
    // A move makes the other value point to the same bytes.
    for (size_t i = moves_.size(); i-- > 0;) {
      cover_more(lives_[static_cast<size_t>(moves_[i][0])], lives_[static_cast<size_t>(moves_[i][1])].last);
    }
    for (const auto& [begin, end] : loops_) {
      for (Life& life : lives_) {
        if (!life.is_needed() || life.first > end || life.last < begin) continue;
        if (life.first >= begin && life.last <= end) continue;
        cover_more(life, begin);
        cover_more(life, end);
      }
    }
    return has_changed;
  }

  const Method& method_;
  std::vector<Life> lives_;
  std::vector<ValueIndex> roots_;
  std::vector<std::array<ValueIndex, 2>> moves_;
  std::vector<std::array<uint32_t, 2>> loops_;
};

/// Each round over loops takes loops times values, and there may be as many rounds as loops.
bool has_too_many_loops(const Method& method) {
  constexpr uint64_t kMaxWork = 10'000'000;
  uint64_t loops = 0;
  for (size_t i = 0; i < method.instructions.size(); ++i) {
    const auto* jump = std::get_if<JumpIfFalse>(&method.instructions[i]);
    if (jump && jump->target <= i) ++loops;
  }
  return loops * loops > kMaxWork / (method.values.size() + 1);
}

Status too_large(const Method& method, uint64_t bytes) {
  return fail(ErrorCode::kInvalidInput,
              format("method {} needs {} bytes of memory for its largest call", quoted(method.name), bytes),
              "bound the dims that may vary by smaller sizes");
}

}  // namespace

uint64_t tensor_bytes(const Tensor& tensor) {
  uint64_t bytes = (static_cast<uint64_t>(bits_of(tensor.dtype)) + 7) / 8;
  for (int32_t size : tensor.sizes) {
    if (size == 0) return 0;
  }
  for (int32_t size : tensor.sizes) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return std::numeric_limits<uint64_t>::max();
  }
  return bytes;
}

Status plan_memory(Method& method) {
  Lives lives(method);
  std::vector<TimedBlock> blocks;
  std::vector<ValueIndex> owners;
  uint64_t unused = 0, states = 0;
  bool has_planned = false, has_states = false;
  for (size_t i = 0; i < method.values.size(); ++i) {
    auto* tensor = std::get_if<Tensor>(&method.values[i]);
    if (!tensor || tensor->storage == Storage::kConstant) continue;
    auto index = static_cast<ValueIndex>(i);
    uint64_t bytes = tensor_bytes(*tensor);
    if (bytes > kMaxTensorBytes) return too_large(method, bytes);
    if (tensor->storage == Storage::kState) {
      ARGOSY_CHECK(tensor->alias_of == kNoValue, "a state has bytes of its own");
      tensor->arena = 2;
      tensor->offset = states;
      states += (bytes + kAlignment - 1) / kAlignment * kAlignment;
      has_states = true;
    } else if (tensor->alias_of == kNoValue) {
      has_planned = true;
      tensor->arena = 1;
      tensor->offset = 0;
      if (lives[index].is_needed()) {
        blocks.push_back({bytes, lives[index].first, lives[index].last});
        owners.push_back(index);
      } else {
        unused = std::max(unused, bytes);
      }
    } else {
      const Tensor& base = method.tensor(lives.root(index));
      ARGOSY_CHECK(bytes <= tensor_bytes(base), "an alias is larger than what it aliases");
      ARGOSY_CHECK(base.storage != Storage::kConstant, "an alias of a constant is to be a constant");
    }
  }
  Packing packing = pack(blocks, kAlignment);
  for (size_t i = 0; i < owners.size(); ++i) method.tensor(owners[i]).offset = packing.offsets[i];
  for (Value& value : method.values) {
    auto* tensor = std::get_if<Tensor>(&value);
    if (!tensor || tensor->alias_of == kNoValue) continue;
    const Tensor& base = method.tensor(tensor->alias_of);  // stands earlier, and so has its place
    tensor->arena = base.arena;
    tensor->offset = base.offset;
  }
  uint64_t planned = std::max(packing.size, (unused + kAlignment - 1) / kAlignment * kAlignment);
  if (uint64_t most = std::max(planned, states); most > kMaxTensorBytes) return too_large(method, most);
  method.arenas.clear();
  if (has_planned || has_states) method.arenas.push_back(planned);
  if (has_states) method.arenas.push_back(states);
  return {};
}

std::vector<Lifetime> lifetimes(const Method& method) {
  if (has_too_many_loops(method)) return {};
  Lives lives(method);
  std::vector<Lifetime> result;
  for (size_t i = 0; i < method.values.size(); ++i) {
    const auto* tensor = std::get_if<Tensor>(&method.values[i]);
    if (!tensor || tensor->storage != Storage::kPlanned || tensor->alias_of != kNoValue) continue;
    auto index = static_cast<ValueIndex>(i);
    if (!lives[index].is_needed()) continue;
    result.push_back({index, lives[index].first, lives[index].last, tensor->offset, tensor_bytes(*tensor)});
  }
  std::ranges::sort(result, {}, [](const Lifetime& each) {
    return std::array<uint64_t, 3>{each.offset, each.first, static_cast<uint64_t>(each.value)};
  });
  return result;
}

}  // namespace argosy::executorch
