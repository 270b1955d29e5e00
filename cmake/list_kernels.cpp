// Prints the names of the kernels that ExecuTorch's libraries register, sorted, as the rows of a C++ array. Built and run
// while Argosy is built (cmake/dependencies.cmake); no part of it afterwards.
#include <executorch/runtime/kernel/operator_registry.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

int main() {
  std::vector<const char*> names;
  for (const auto& kernel : executorch::runtime::get_registered_kernels()) names.push_back(kernel.name_);
  auto is_less = [](const char* a, const char* b) { return std::strcmp(a, b) < 0; };
  auto is_same = [](const char* a, const char* b) { return std::strcmp(a, b) == 0; };
  std::sort(names.begin(), names.end(), is_less);
  // A kernel may be registered for several types of tensors.
  names.erase(std::unique(names.begin(), names.end(), is_same), names.end());
  // Fewer than these, and a library was not linked.
  if (names.size() < 200) return std::fprintf(stderr, "only %zu kernels are registered\n", names.size()), 1;
  for (const char* name : names) std::printf("\"%s\",\n", name);
  return 0;
}
