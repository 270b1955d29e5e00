#include "backends/executorch/group_size.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace argosy::executorch {
namespace {

constexpr int64_t kLargestShown = 1024;

}  // namespace

bool fits_groups(int64_t width, int64_t size) { return size > 0 && size % kGroupUnit == 0 && width % size == 0; }

std::string group_sizes_for(const std::set<int64_t>& widths) {
  std::vector<std::string> best;
  int64_t most = 0;
  for (int64_t size = kGroupUnit; size <= kLargestShown; size *= 2) {
    int64_t count = std::ranges::count_if(widths, [&](int64_t width) { return fits_groups(width, size); });
    if (count > most) best.clear();
    if (count != 0 && count >= most) best.push_back(format("{}", size));
    most = std::max(most, count);
  }
  return best.empty() ? "no size of groups fits; 0 is a scale for each row"
                      : format("{} fit; 0 is a scale for each row", join(best, ", "));
}

}  // namespace argosy::executorch
