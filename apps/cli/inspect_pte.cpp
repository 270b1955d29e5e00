#include "inspect/inspect_pte.h"

#include <algorithm>

#include "base/text.h"
#include "inspect_format.h"
#include "table.h"

namespace argosy::cli {
namespace {

using executorch::Method;
using executorch::ValueIndex;

bool is_getter(const Method& method) { return method.instructions.empty() && method.inputs.empty(); }

std::string more_text(size_t shown, size_t all, std::string_view margin) {
  return shown < all ? format("{}… {} more (--top 0 shows all)\n", margin, format_count(all - shown)) : "";
}

std::string counts_text(std::string_view heading, const std::vector<OpCount>& counts, size_t top, int indent) {
  if (counts.empty()) return "";
  Table table("rl", indent + 2);
  size_t shown = std::min(top, counts.size());
  for (size_t i = 0; i < shown; ++i) table.add({format_count(counts[i].count), counts[i].op});
  std::string margin(static_cast<size_t>(indent), ' ');
  return format("{}{}\n{}{}", margin, heading, table.text(), more_text(shown, counts.size(), margin + "  "));
}

std::string values_text(std::string_view heading, const Method& method, const std::vector<ValueIndex>& values,
                        size_t top) {
  if (values.empty()) return "";
  Table table("rl", 4);
  size_t shown = std::min(top, values.size());
  for (size_t i = 0; i < shown; ++i) table.add({std::to_string(i), value_text(method, values[i])});
  return format("  {}\n{}{}", heading, table.text(), more_text(shown, values.size(), "    "));
}

std::string method_text(const Method& method, const PteMethodReport& report, size_t top) {
  std::string text =
      format("\nmethod {}: {}", printable(method.name), count_of(method.instructions.size(), "instruction"));
  if (report.delegate_calls > 0) text += format(", of which {} call delegates", format_count(report.delegate_calls));
  text += "\n" + values_text("inputs", method, method.inputs, top);
  text += values_text("outputs", method, method.outputs, top);
  text += counts_text("kernels", report.kernels, top, 2);
  for (const BackendReport& backend : report.backends) {
    std::string heading = format("{}: {}, {}, {}", printable(backend.backend), count_of(backend.delegates, "delegate"),
                                 count_of(backend.nodes, "node"), format_bytes(backend.payload_bytes));
    text += counts_text(heading, backend.kinds, top, 2);
    if (backend.kinds.empty()) text += "  " + heading + "\n";
  }
  Table memory("lrl", 4);
  for (size_t i = 0; i < method.arenas.size(); ++i) {
    std::string note = i == 0   ? format("at most {} live at once", format_bytes(report.peak_bytes))
                       : i == 1 ? "states, kept between calls"
                                : "";
    memory.add({format("arena {}", i + 1), format_bytes(method.arenas[i]), note});
  }
  if (!memory.is_empty()) text += "  memory\n" + memory.text();
  return text;
}

}  // namespace

std::string pte_text(const std::string& path, const PteReport& report, size_t top) {
  const executorch::ProgramFile& file = report.file;
  uint64_t instructions = 0;
  for (const Method& method : file.methods) instructions += method.instructions.size();
  std::string text =
      format("{}: {}, {}, {}, {}\n", path, describe(InputKind::kExecutorch), count_of(file.methods.size(), "method"),
             count_of(instructions, "instruction"), format_bytes(file.bytes));
  for (size_t i = 0; i < file.methods.size(); ++i) {
    if (!is_getter(file.methods[i])) text += method_text(file.methods[i], report.methods[i], top);
  }
  Table getters("ll");
  for (const Method& method : file.methods) {
    if (!is_getter(method)) continue;
    std::vector<std::string> values;
    for (ValueIndex each : method.outputs) values.push_back(value_text(method, each));
    getters.add({method.name, join(values, ", ")});
  }
  if (!getters.is_empty()) text += "\nconstants\n" + getters.text();
  std::vector<executorch::StoredData> data = file.data;
  std::ranges::stable_sort(data, std::greater{}, &executorch::StoredData::bytes);
  Table table("rl");
  size_t shown = std::min(top, data.size());
  for (size_t i = 0; i < shown; ++i) table.add({format_bytes(data[i].bytes), data[i].key});
  if (!data.empty()) {
    text += format("\ndata: {}, {}\n{}{}", count_of(data.size(), "piece"), format_bytes(file.data_bytes), table.text(),
                   more_text(shown, data.size(), "  "));
  }
  return text;
}

}  // namespace argosy::cli
