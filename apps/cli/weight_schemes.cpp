#include "weight_schemes.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "backends/onnx/quantize.h"
#include "base/text.h"
#include "extensions.h"
#include "io/json.h"
#include "subprocess.h"
#include "tensor/row_quantizer.h"

namespace argosy::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers go to Python as they are in memory");

constexpr const char* kSchemeModule = "argosy.weight_scheme_process";
constexpr uint64_t kNoError = 0;  // else the length of an error, as JSON
constexpr uint64_t kMostOfError = 1 << 20;

/// Rows go to Python, and come back as integers: the format is described in weight_scheme_process.py.
class PythonQuantizer final : public RowQuantizer {
 public:
  PythonQuantizer(std::unique_ptr<Conversation> python, std::string name, int bits, bool has_zero_points)
      : python_(std::move(python)), name_(std::move(name)), bits_(bits), has_zero_points_(has_zero_points) {}

  std::string name() const override { return name_; }
  int bits() const override { return bits_; }
  bool has_zero_points() const override { return has_zero_points_; }

  Status quantize(const RowsToQuantize& rows) const override {
    const std::lock_guard lock(mutex_);
    const int64_t sizes[] = {rows.rows, rows.blocks, rows.block};
    uint64_t code = 0;
    if (!python_->send(std::as_bytes(std::span(sizes))) || !python_->send(std::as_bytes(rows.values)) ||
        !python_->receive(std::as_writable_bytes(std::span(&code, 1))))
      return ended();
    if (code != kNoError) return fail(error(code));
    if (!python_->receive(std::as_writable_bytes(rows.integers)) ||
        !python_->receive(std::as_writable_bytes(rows.scales)) ||
        !python_->receive(std::as_writable_bytes(rows.zero_points)))
      return ended();
    return {};
  }

 private:
  Status ended() const {
    return fail(ErrorCode::kIo, format("the Python process of the scheme {} has ended", name_),
                "it may lack memory, or the scheme ends Python; run its function in Python to see");
  }

  Error error(uint64_t length) const {
    std::string text(static_cast<size_t>(std::min(length, kMostOfError)), ' ');
    if (!python_->receive(std::as_writable_bytes(std::span(text)))) return ended().error();
    auto answer = JsonDocument::parse(text, "the scheme's error");
    return answer ? error_of_extension(answer->root()) : answer.error();
  }

  std::unique_ptr<Conversation> python_;
  std::string name_;
  int bits_;
  bool has_zero_points_;
  mutable std::mutex mutex_;
};

}  // namespace

Status find_weight_scheme(onnx::Quantization& how, const Environment& environment) {
  if (how.own_name.empty() || how.own != nullptr) return {};
  ARGOSY_TRY(ExtensionProcess started,
             start_extension(kSchemeModule, how.own_name, onnx::unknown_scheme(how.own_name), environment));
  JsonView scheme = started.about.root();
  const int64_t bits = scheme.find("bits").as_integer().value_or(0);
  const int64_t block = scheme.find("block").as_integer().value_or(0);
  if ((bits != 4 && bits != 8) || block <= 0) return fail(extension_of_another_version());
  if (how.block == 0) how.block = block;
  how.own = std::make_shared<PythonQuantizer>(
      std::move(started.python),
      format("{} of {} {}", how.own_name, text_at(scheme, "package"), text_at(scheme, "package_version")),
      static_cast<int>(bits), scheme.find("zero_points").as_bool().value_or(false));
  return {};
}

}  // namespace argosy::cli
