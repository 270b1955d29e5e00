#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace argosy {

/// The name of the picture in a folder of several variants.
inline constexpr std::string_view kPictureFile = "quality.svg";

/// A variant of a model, and what its check measured.
struct MeasuredVariant {
  std::string name;      // of driver/variants.h
  uint64_t bytes = 0;    // of its files
  bool is_full = false;  // the check ran the model's own weights
  std::string quality;   // figures, as ExportCheck has them; may be empty
};

/// An SVG of 600 by 400: quality against size, a point for each variant that was measured by the figure that most have.
/// One that computes as the model does is as good as it. Same variants, same bytes. Empty if there are fewer than two
/// points, or nothing was measured.
std::string quality_picture(const std::vector<MeasuredVariant>& variants);

}  // namespace argosy
