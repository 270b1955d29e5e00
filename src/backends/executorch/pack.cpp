#include "backends/executorch/pack.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "base/align.h"

namespace argosy::executorch {
namespace {

/// Placed blocks, found by lifetime: time is cut into spans, and each span lists the blocks that exist in it, so that
/// finding the blocks that exist together with another one need not visit all of them.
class Placed {
 public:
  explicit Placed(std::span<const TimedBlock> blocks) : blocks_(blocks), seen_(blocks.size(), kNever) {
    uint32_t end = 0;
    for (const TimedBlock& block : blocks) end = std::max(end, block.last);
    step_ = end / kSpans + 1;
    spans_.resize(end / step_ + 1);
  }

  void add(uint32_t block) {
    for (uint32_t i = blocks_[block].first / step_; i <= blocks_[block].last / step_; ++i) spans_[i].push_back(block);
  }

  /// Those that live at some moment of `block`, each once.
  const std::vector<uint32_t>& company_of(uint32_t block) {
    company_.clear();
    const TimedBlock& own = blocks_[block];
    for (uint32_t i = own.first / step_; i <= own.last / step_; ++i) {
      for (uint32_t other : spans_[i]) {
        if (seen_[other] == block) continue;
        seen_[other] = block;
        if (blocks_[other].first <= own.last && own.first <= blocks_[other].last) company_.push_back(other);
      }
    }
    return company_;
  }

 private:
  static constexpr uint32_t kSpans = 256, kNever = std::numeric_limits<uint32_t>::max();
  std::span<const TimedBlock> blocks_;
  uint32_t step_ = 1;
  std::vector<std::vector<uint32_t>> spans_;
  std::vector<uint32_t> seen_;  // by block: the last `block` that found it
  std::vector<uint32_t> company_;
};

Packing pack_in_order(std::span<const TimedBlock> blocks, std::span<const uint32_t> order, uint64_t alignment) {
  Packing packing;
  packing.offsets.resize(blocks.size());
  Placed placed(blocks);
  struct Range {
    uint64_t begin, end;
  };
  std::vector<Range> taken;
  for (uint32_t block : order) {
    uint64_t size = rounded_up(blocks[block].size, alignment);
    taken.clear();
    for (uint32_t other : placed.company_of(block)) {
      uint64_t begin = packing.offsets[other];
      taken.push_back({begin, begin + rounded_up(blocks[other].size, alignment)});
    }
    std::ranges::sort(taken, {}, &Range::begin);
    uint64_t end = 0, offset = 0, tightest = std::numeric_limits<uint64_t>::max();
    for (const Range& range : taken) {
      if (range.begin >= end + size && range.begin - end < tightest) {
        tightest = range.begin - end;
        offset = end;
      }
      end = std::max(end, range.end);
    }
    if (tightest == std::numeric_limits<uint64_t>::max()) offset = end;
    packing.offsets[block] = offset;
    packing.size = std::max(packing.size, offset + size);
    placed.add(block);
  }
  return packing;
}

}  // namespace

uint64_t peak_bytes(std::span<const TimedBlock> blocks, uint64_t alignment) {
  uint32_t end = 0;
  for (const TimedBlock& block : blocks) end = std::max(end, block.last);
  std::vector<uint64_t> begins(size_t{end} + 1), ends(size_t{end} + 2);
  for (const TimedBlock& block : blocks) {
    begins[block.first] += rounded_up(block.size, alignment);
    ends[size_t{block.last} + 1] += rounded_up(block.size, alignment);
  }
  uint64_t now = 0, peak = 0;
  for (size_t i = 0; i <= end; ++i) {
    now += begins[i] - ends[i];
    peak = std::max(peak, now);
  }
  return peak;
}

Packing pack(std::span<const TimedBlock> blocks, uint64_t alignment) {
  if (blocks.empty()) return {};
  uint64_t least = peak_bytes(blocks, alignment);
  auto lifetime = [&](uint32_t i) { return uint64_t{blocks[i].last} - blocks[i].first + 1; };
  // Large ones first, long-lived ones first, and in the order of time: each does best for some programs.
  auto by_size = [&](uint32_t i) { return std::array{~blocks[i].size, ~lifetime(i), uint64_t{blocks[i].first}}; };
  auto by_lifetime = [&](uint32_t i) { return std::array{~lifetime(i), ~blocks[i].size, uint64_t{blocks[i].first}}; };
  auto by_time = [&](uint32_t i) { return std::array{uint64_t{blocks[i].first}, ~blocks[i].size, ~lifetime(i)}; };
  std::vector<uint32_t> order(blocks.size());
  Packing best;
  auto attempt = [&](const auto& key) {
    if (!best.offsets.empty() && best.size == least) return;
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, key);
    Packing packing = pack_in_order(blocks, order, alignment);
    if (best.offsets.empty() || packing.size < best.size) best = std::move(packing);
  };
  attempt(by_size);
  attempt(by_lifetime);
  attempt(by_time);
  return best;
}

}  // namespace argosy::executorch
