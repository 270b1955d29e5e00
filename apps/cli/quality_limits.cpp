#include "quality_limits.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"
#include "driver/variants.h"

namespace argosy::cli {
namespace {

constexpr const char* kHint = "store fewer weights in few bits, or in more: --quantize int4,lm_head=int8, or int8";

/// Whether the export computes otherwise than the model in float32 does, by what it stores.
bool loses_digits(const ExportJob& job, const Backend& backend) {
  std::vector<std::string> arguments = backend.graph_arguments(job.options.backend_options);
  return job.request.dtype == "float16" || job.request.dtype == "bfloat16" ||
         std::ranges::any_of(arguments,
                             [](const std::string& each) { return each.starts_with("--q") || each == kMixedFlag; });
}

/// A limit for something that this model does not have, or that could not be measured.
tl::unexpected<Error> not_measured(std::string_view what, std::string_view of, std::string_view flag) {
  return fail(ErrorCode::kUnsupportedFeature,
              format("the {}{} cannot be measured: the model has none, or reads no text by itself", what, of),
              format("leave out {}", flag));
}

}  // namespace

Status check_quality(const CheckOutcome& outcome, const ExportJob& job, const Backend& backend) {
  const QualityLimits& least = job.options.least;
  const std::string of = job.variant.empty() ? "" : format(" of {}", job.variant);
  if (!least.are_any() || !loses_digits(job, backend)) return {};
  if (least.agreement > 0) {
    if (!outcome.agreement) return not_measured("agreement", of, "--min-agreement");
    if (*outcome.agreement < least.agreement) {
      return fail(ErrorCode::kInvalidInput,
                  format("the best token or class{} is the model's in {:.1f} % of all cases, less than "
                         "--min-agreement {}",
                         of, 100 * *outcome.agreement, least.agreement),
                  kHint);
    }
  }
  if (least.cosine > 0) {
    if (!outcome.least_cosine) return not_measured("cosine", of, "--min-cosine");
    if (*outcome.least_cosine < least.cosine) {
      return fail(ErrorCode::kInvalidInput,
                  format("the least cosine of outputs{} with the model's is {:.6f}, less than --min-cosine {}", of,
                         *outcome.least_cosine, least.cosine),
                  kHint);
    }
  }
  if (std::isfinite(least.divergence)) {
    if (!outcome.divergence) return not_measured("KL divergence", of, "--max-kl");
    if (*outcome.divergence > least.divergence) {
      return fail(
          ErrorCode::kInvalidInput,
          format("the KL divergence{} is {:.2g}, more than --max-kl {}", of, *outcome.divergence, least.divergence),
          kHint);
    }
  }
  return {};
}

}  // namespace argosy::cli
