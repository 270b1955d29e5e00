#include <algorithm>
#include <numeric>

#include "base/checked_math.h"
#include "base/text.h"
#include "inspect/inspect.h"

namespace argosy {

Result<OnnxReport> inspect_onnx(const std::filesystem::path& path, OnnxNodes nodes) {
  ARGOSY_TRY(OnnxModel model, read_onnx_model(path, OnnxExternalData::kMustBeSound, nodes));
  OnnxReport report{std::move(model), {}, {}, {}};
  const std::vector<OnnxInitializer>& initializers = report.model.initializers;
  DTypeTotals totals;
  for (const OnnxInitializer& tensor : initializers) {
    if (!tensor.dtype) continue;
    totals.add(*tensor.dtype, static_cast<uint64_t>(element_count(tensor.shape).value_or(0)), tensor.bytes);
  }
  report.totals = totals.list();
  report.by_size.resize(initializers.size());
  std::iota(report.by_size.begin(), report.by_size.end(), 0);
  // Names repeat where sub-graphs have their own; the position then decides.
  std::sort(report.by_size.begin(), report.by_size.end(), [&](uint32_t i, uint32_t j) {
    const OnnxInitializer &a = initializers[i], &b = initializers[j];
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return a.name != b.name ? a.name < b.name : i < j;
  });
  for (const OnnxExternalFile& file : report.model.external_files) {
    if (file.available_bytes) continue;
    report.warnings.push_back(format("{}, which holds {} of tensors, is not there", argosy::quoted(file.location),
                                     format_bytes(file.needed_bytes)));
  }
  return report;
}

}  // namespace argosy
