#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "inspect/html_text.h"
#include "inspect/inspect_pte.h"

namespace argosy {
namespace {

constexpr double kWidth = 1400, kHeight = 620;
constexpr size_t kMaxRectangles = 20'000;
constexpr size_t kMaxPictures = 32;

constexpr std::string_view kMemoryStyle = R"(
body{font:14px/1.4 sans-serif;margin:24px;color:#222}
h2{font-size:16px;margin:28px 0 2px}
p{margin:2px 0 8px;color:#555}
svg{background:#fafafa;border:1px solid #ccc}
rect{stroke:#fff;stroke-width:.4}
rect:hover{stroke:#000;stroke-width:1.5}
.in{fill:#4e9a5b}.out{fill:#c76b3f}.mid{fill:#6f93c4}
.peak{stroke:#b00020;stroke-dasharray:4 3}
text{font-size:11px;fill:#444}
i{font-style:normal;padding:0 6px;color:#fff}
i.in{background:#4e9a5b}i.out{background:#c76b3f}i.mid{background:#6f93c4}
)";

/// What an instruction does, in a word or two.
std::string name_of(const executorch::Method& method, uint32_t instruction) {
  if (instruction >= method.instructions.size()) return "";
  const executorch::Instruction& each = method.instructions[instruction];
  if (const auto* call = std::get_if<executorch::KernelCall>(&each)) {
    const executorch::KernelName& kernel = method.kernels[call->kernel];
    return kernel.overload.empty() ? kernel.name : format("{}.{}", kernel.name, kernel.overload);
  }
  if (const auto* call = std::get_if<executorch::DelegateCall>(&each)) {
    return format("{} {}", method.delegates[call->delegate].backend, call->delegate);
  }
  return std::holds_alternative<executorch::Move>(each) ? "move" : "jump";
}

std::string picture(const executorch::Method& method, const PteMethodReport& report) {
  std::vector<executorch::Lifetime> shown = report.lifetimes;
  if (shown.size() > kMaxRectangles) {
    std::ranges::sort(shown, [](const executorch::Lifetime& a, const executorch::Lifetime& b) {
      return std::tie(b.size, a.offset, a.first, a.value) < std::tie(a.size, b.offset, b.first, b.value);
    });
    shown.resize(kMaxRectangles);
  }
  std::map<executorch::ValueIndex, std::string_view> kinds;
  for (executorch::ValueIndex each : method.outputs) kinds[each] = "out";
  for (executorch::ValueIndex each : method.inputs) kinds[each] = "in";
  auto arena = static_cast<double>(std::max<uint64_t>(method.arenas.empty() ? 0 : method.arenas[0], 1));
  auto count = static_cast<double>(std::max<size_t>(method.instructions.size(), 1));
  double step = kWidth / count;
  std::string svg =
      format("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n", kWidth, kHeight);
  for (const executorch::Lifetime& each : shown) {
    auto kind = kinds.find(each.value);
    double height = static_cast<double>(each.size) / arena * kHeight;
    double top = kHeight - (static_cast<double>(each.offset) / arena * kHeight) - height;
    std::string source = kind != kinds.end() && kind->second == "in" ? "input" : name_of(method, each.first);
    svg += format(
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"><title>value {}, {}: {} "
        "at {}, instructions {} to {}, first {}</title></rect>\n",
        kind == kinds.end() ? "mid" : kind->second, step * each.first, top, step * (each.last - each.first + 1.0),
        std::max(height, 0.3), each.value, html_text(tensor_text(method.tensor(each.value))), format_bytes(each.size),
        each.offset, each.first, each.last, html_text(source));
  }
  if (report.peak_bytes > 0) {
    double x = step * (report.peak_instruction + 0.5);
    double y = kHeight - static_cast<double>(report.peak_bytes) / arena * kHeight;
    bool is_right = x > kWidth * 0.7;
    svg += format("<line class=\"peak\" x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"0\" y2=\"{1}\"/>\n", x, kHeight);
    svg += format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">peak {} at instruction {}: {}</text>\n",
                  is_right ? x - 5 : x + 5, std::clamp(y - 5, 12.0, kHeight - 5), is_right ? "end" : "start",
                  format_bytes(report.peak_bytes), report.peak_instruction,
                  html_text(name_of(method, report.peak_instruction)));
  }
  return svg + "</svg>\n";
}

}  // namespace

std::string memory_html(const std::string& title, const PteReport& report) {
  std::string page = page_start(title, "Memory of " + title, kMemoryStyle);
  page +=
      "<p>Instructions from left to right, bytes from bottom to top; point at a tensor to see what it is. "
      "<i class=\"in\">inputs</i> <i class=\"out\">outputs</i> <i class=\"mid\">between</i></p>\n";
  size_t pictures = 0;
  for (size_t i = 0; i < report.methods.size() && pictures < kMaxPictures; ++i) {
    const executorch::Method& method = report.file.methods[i];
    if (report.methods[i].lifetimes.empty()) continue;
    ++pictures;
    uint64_t arena = method.arenas[0], states = method.arenas.size() > 1 ? method.arenas[1] : 0;
    page += format("<h2>{}</h2>\n<p>{} instructions, {} tensors in {} ({} live at once at most)",
                   html_text(method.name), method.instructions.size(), report.methods[i].lifetimes.size(),
                   format_bytes(arena), format_bytes(report.methods[i].peak_bytes));
    if (states > 0) page += format(", and {} of states that calls leave to each other", format_bytes(states));
    page += "</p>\n" + picture(method, report.methods[i]);
  }
  return page.append(kPageEnd);
}

}  // namespace argosy
