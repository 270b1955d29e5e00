#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "inspect_format.h"
#include "table.h"

namespace argosy::cli {
namespace {

using executorch::Method;

constexpr size_t kMaxKernels = 6;  // of a line
constexpr size_t kMaxMethods = 4;  // in full

std::string most_frequent(const std::vector<OpCount>& counts) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(counts.size(), kMaxKernels); ++i)
    shown.push_back(format("{} {}", format_count(counts[i].count), counts[i].op));
  if (counts.size() > kMaxKernels) shown.push_back(count_of(counts.size() - kMaxKernels, "other kind"));
  return shown.empty() ? "none" : join(shown, ", ");
}

/// How many of these have a word in their name, whatever its case.
uint64_t count_with(const std::vector<OpCount>& counts, std::string_view word) {
  uint64_t count = 0;
  for (const OpCount& each : counts) {
    std::string name = each.op;
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (name.find(word) != std::string::npos) count += each.count;
  }
  return count;
}

std::string attention_text(const PteMethodReport& report) {
  std::vector<std::string> found;
  uint64_t softmax = count_with(report.kernels, "softmax");
  for (const BackendReport& backend : report.backends) softmax += count_with(backend.kinds, "softmax");
  for (const OpCount& each : report.kernels) {
    if (count_with({each}, "sdpa") > 0 || count_with({each}, "attention") > 0)
      found.push_back(format("{} × {}", format_count(each.count), each.op));
  }
  if (softmax > 0)
    found.push_back(format("{} × Softmax: attention, where it is of these, is written out", format_count(softmax)));
  return found.empty() ? "none found" : join(found, ", ");
}

/// The number that a method without inputs gives.
std::optional<int64_t> constant_of(const executorch::ProgramFile& file, std::string_view name) {
  for (const Method& method : file.methods) {
    if (method.name != name || !method.inputs.empty() || method.outputs.size() != 1) continue;
    const auto* number = std::get_if<int64_t>(&method.values[static_cast<size_t>(method.outputs[0])]);
    if (number != nullptr) return *number;
  }
  return std::nullopt;
}

std::string states_text(const executorch::ProgramFile& file, const Method& method) {
  uint64_t states = 0;
  for (const executorch::Value& value : method.values) {
    const auto* tensor = std::get_if<executorch::Tensor>(&value);
    if (tensor != nullptr && tensor->storage == executorch::Storage::kState) ++states;
  }
  if (states == 0) return "none: nothing is kept between calls";
  std::string text = format("{}, {} reserved", count_of(states, "state"),
                            format_bytes(method.arenas.size() > 1 ? method.arenas[1] : 0));
  std::optional<int64_t> length = constant_of(file, "get_max_context_len");
  if (!length) length = constant_of(file, "get_max_seq_len");
  if (length && *length > 0) text += format(", for texts of {} tokens", format_count(static_cast<uint64_t>(*length)));
  return text;
}

void add_method(Explanation& lines, const executorch::ProgramFile& file, const Method& method,
                const PteMethodReport& report) {
  lines.add(
      {"method", format("{}: {}, {} of them calls of delegates", method.name,
                        count_of(method.instructions.size(), "instruction"), format_count(report.delegate_calls))});
  lines.add({"kernels", most_frequent(report.kernels)});
  for (const BackendReport& each : report.backends) {
    lines.add({"delegates",
               format("{} {}, {}, {}: {}", format_count(each.delegates), each.backend, count_of(each.nodes, "node"),
                      format_bytes(each.payload_bytes), most_frequent(each.kinds))});
  }
  lines.add({"attention", attention_text(report)});
  lines.add(
      {"memory", format("{} for a call, {} of it live at once",
                        format_bytes(method.arenas.empty() ? 0 : method.arenas[0]), format_bytes(report.peak_bytes))});
  lines.add({"caches", states_text(file, method)});
}

}  // namespace

Explanation pte_explanation(const std::string& path, const PteReport& report) {
  const executorch::ProgramFile& file = report.file;
  std::vector<size_t> computing;  // the others are constants
  for (size_t i = 0; i < file.methods.size(); ++i) {
    if (!file.methods[i].instructions.empty() || !file.methods[i].inputs.empty()) computing.push_back(i);
  }
  Explanation lines(format("{}: {}, {} and {}, {}", printable(path), describe(InputKind::kExecutorch),
                           count_of(computing.size(), "method"),
                           count_of(file.methods.size() - computing.size(), "constant"), format_bytes(file.bytes)));
  for (size_t i = 0; i < std::min(computing.size(), kMaxMethods); ++i)
    add_method(lines, file, file.methods[computing[i]], report.methods[computing[i]]);
  if (computing.size() > kMaxMethods) lines.add({"", count_of(computing.size() - kMaxMethods, "other method")});
  lines.add({"data", format("{}, {} with names", format_bytes(file.data_bytes), count_of(file.data.size(), "piece"))});
  return lines;
}

}  // namespace argosy::cli
