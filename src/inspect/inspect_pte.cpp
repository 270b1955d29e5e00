#include "inspect/inspect_pte.h"

#include <algorithm>
#include <map>

#include "base/text.h"

namespace argosy {
namespace {

std::vector<OpCount> by_count(const std::map<std::string, uint64_t>& counts) {
  std::vector<OpCount> result;
  for (const auto& [name, count] : counts) result.push_back({name, count});
  std::ranges::stable_sort(result, std::greater{}, &OpCount::count);
  return result;
}

void find_peak(PteMethodReport& report) {
  // Two at one place and time are two names of the same bytes.
  std::vector<executorch::Lifetime> places;
  for (const executorch::Lifetime& each : report.lifetimes) {
    if (!places.empty() && places.back().offset == each.offset && each.first <= places.back().last) {
      places.back().last = std::max(places.back().last, each.last);
      places.back().size = std::max(places.back().size, each.size);
    } else {
      places.push_back(each);
    }
  }
  std::map<uint32_t, int64_t> changes;
  for (const executorch::Lifetime& each : places) {
    changes[each.first] += static_cast<int64_t>(each.size);
    changes[each.last + 1] -= static_cast<int64_t>(each.size);
  }
  int64_t now = 0, peak = 0;
  for (const auto& [moment, change] : changes) {
    now += change;
    if (now <= peak) continue;
    peak = now;
    report.peak_instruction = moment;
  }
  report.peak_bytes = static_cast<uint64_t>(peak);
}

PteMethodReport report_method(const executorch::Method& method,
                              const std::vector<executorch::DelegateContents>& delegates) {
  PteMethodReport report;
  std::map<std::string, uint64_t> kernels;
  for (const executorch::Instruction& each : method.instructions) {
    if (const auto* call = std::get_if<executorch::KernelCall>(&each)) {
      const executorch::KernelName& kernel = method.kernels[call->kernel];
      ++kernels[kernel.overload.empty() ? kernel.name : format("{}.{}", kernel.name, kernel.overload)];
    }
    if (std::holds_alternative<executorch::DelegateCall>(each)) ++report.delegate_calls;
  }
  report.kernels = by_count(kernels);
  std::map<std::string, BackendReport> backends;
  std::map<std::string, std::map<std::string, uint64_t>> kinds;
  for (size_t i = 0; i < delegates.size(); ++i) {
    const std::string& name = method.delegates[i].backend;
    BackendReport& backend = backends[name];
    backend.backend = name;
    ++backend.delegates;
    backend.nodes += delegates[i].nodes;
    backend.payload_bytes += delegates[i].payload_bytes;
    for (const auto& [kind, count] : delegates[i].kinds) kinds[name][kind] += count;
  }
  for (auto& [name, backend] : backends) {
    backend.kinds = by_count(kinds[name]);
    report.backends.push_back(std::move(backend));
  }
  report.lifetimes = executorch::lifetimes(method);
  // Of a damaged file: tensors that lie outside of their arena are shown nowhere.
  uint64_t end = method.arenas.empty() ? 0 : method.arenas[0];
  std::erase_if(report.lifetimes, [&](const executorch::Lifetime& each) {
    return method.tensor(each.value).arena != 1 || each.offset > end || each.size > end - each.offset;
  });
  find_peak(report);
  return report;
}

}  // namespace

Result<PteReport> inspect_pte(const std::filesystem::path& path) {
  PteReport report;
  ARGOSY_TRY(report.file, executorch::read_program(path));
  for (size_t i = 0; i < report.file.methods.size(); ++i) {
    report.methods.push_back(report_method(report.file.methods[i], report.file.delegates[i]));
  }
  return report;
}

std::string tensor_text(const executorch::Tensor& tensor) {
  std::vector<std::string> sizes;
  for (int32_t size : tensor.sizes) sizes.push_back(format("{}{}", tensor.is_dynamic ? "≤" : "", size));
  return format("{}[{}]", to_text(tensor.dtype), join(sizes, ", "));
}

std::string value_text(const executorch::Method& method, executorch::ValueIndex index) {
  const executorch::Value& value = method.values[static_cast<size_t>(index)];
  if (const auto* each = std::get_if<executorch::Tensor>(&value)) return tensor_text(*each);
  if (const auto* each = std::get_if<int64_t>(&value)) return std::to_string(*each);
  if (const auto* each = std::get_if<bool>(&value)) return *each ? "true" : "false";
  if (const auto* each = std::get_if<double>(&value)) return format_double(*each);
  if (const auto* each = std::get_if<std::string>(&value)) return quoted(*each);
  if (const auto* each = std::get_if<executorch::IntValues>(&value)) {
    std::vector<std::string> items;
    for (executorch::ValueIndex item : each->items) {
      const auto* number = std::get_if<int64_t>(&method.values[static_cast<size_t>(item)]);
      items.push_back(number ? std::to_string(*number) : "?");
    }
    return format("[{}]", join(items, ", "));
  }
  return std::holds_alternative<executorch::NoValue>(value) ? "none" : "a list";
}

}  // namespace argosy
