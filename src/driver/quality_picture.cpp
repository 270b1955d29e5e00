#include "driver/quality_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "driver/variants.h"
#include "io/json.h"

namespace argosy {
namespace {

constexpr double kWidth = 600, kHeight = 400;
constexpr double kLeft = 64, kRight = 580, kTop = 56, kBottom = 350;  // of what is drawn in
constexpr double kLetter = 7, kLine = 16, kRadius = 5;                // of texts, generously, and of points
constexpr double kLabelTop = 32;                                      // below the title
constexpr int kMostLines = 16;                                        // that a label is moved up or down by

/// A figure that variants are compared by; better ones are nearer 1.
struct PictureFigure {
  std::string_view key, title;
  bool is_share;  // shown in percent
  bool is_error;  // 1 less it
};

// The finest first: the best class may be the same where outputs are not.
constexpr std::array<PictureFigure, 3> kPictureFigures = {{
    {"least_cosine", "least cosine with the model's outputs", false, false},
    {"agreement", "best tokens that are the model's", true, false},
    {"word_error", "words that are the model's", true, true},
}};

struct PicturePoint {
  std::string_view name;
  uint64_t bytes;
  double quality;
};

struct PictureBox {
  double left, top, right, bottom;

  bool overlaps(const PictureBox& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

bool computes_as_the_model(const MeasuredVariant& variant) {
  const Variant* known = find_variant(variant.name);
  return known != nullptr && known->dtype == "float32" && known->quantize.empty();
}

std::optional<double> figure_of(const MeasuredVariant& variant, const PictureFigure& figure) {
  auto document = JsonDocument::parse(variant.quality, "quality");
  if (!document) return std::nullopt;
  auto found = document->root().find(figure.key).as_double();
  if (!found || !std::isfinite(*found)) return std::nullopt;
  return std::clamp(figure.is_error ? 1 - *found : *found, 0.0, 1.0);
}

/// The points by one figure; none if nothing was measured by it.
std::vector<PicturePoint> points_by(const PictureFigure& figure, const std::vector<MeasuredVariant>& variants) {
  std::vector<PicturePoint> points;
  size_t measured = 0;
  for (const MeasuredVariant& each : variants) {
    if (!each.is_full) continue;
    if (auto quality = figure_of(each, figure)) {
      points.push_back({each.name, each.bytes, *quality});
      ++measured;
    } else if (computes_as_the_model(each)) {
      points.push_back({each.name, each.bytes, 1});
    }
  }
  if (measured == 0 || points.size() < 2) points.clear();
  return points;
}

/// 1, 2 or 5 times a power of ten, so that about five of them make up `span`, which is positive.
double step_for(double span) {
  double step = 1;
  while (step * 10 <= span / 5) step *= 10;
  while (step > span / 5) step /= 10;
  // Now there are 5 to 50 steps.
  for (double factor : {1.0, 2.0, 5.0}) {
    if (span / (step * factor) <= 6) return step * factor;
  }
  return step * 10;
}

/// Digits behind the point that tell multiples of a step apart.
int digits_for(double step) {
  int digits = 0;
  while (step < 0.999 && digits < 12) {
    step *= 10;
    ++digits;
  }
  return digits;
}

/// Axes and what lies between them.
class PictureFrame {
 public:
  PictureFrame(const PictureFigure& figure, const std::vector<PicturePoint>& points) : figure_(figure) {
    double least = 1, largest = 1;
    for (const PicturePoint& each : points) {
      least = std::min(least, each.quality);
      largest = std::max(largest, static_cast<double>(each.bytes));
    }
    double span = least < 1 ? std::max(1 - least, 1e-6) * 1.1 : 0.01;
    y_step_ = step_for(span);
    y_low_ = std::max(1 - y_step_ * std::ceil(span / y_step_), 0.0);
    while (largest / unit_ >= 1000 && units_.size() > 1) {
      unit_ *= 1000;
      units_.erase(units_.begin());
    }
    x_step_ = step_for(largest / unit_ * 1.1);
    x_high_ = x_step_ * std::ceil(largest / unit_ * 1.1 / x_step_);
  }

  double x_of(uint64_t bytes) const { return x_at(static_cast<double>(bytes) / unit_); }
  double y_of(double quality) const { return kBottom - (quality - y_low_) / (1 - y_low_) * (kBottom - kTop); }

  std::string value_text(double quality, int more_digits) const {
    double scale = figure_.is_share ? 100 : 1;
    int digits = digits_for(y_step_ * scale) + more_digits;
    // What is not 1 does not look like it.
    while (quality < 1 && digits < 9 && format("{:.{}f}", quality * scale, digits) == format("{:.{}f}", scale, digits))
      ++digits;
    return format("{:.{}f}{}", quality * scale, digits, figure_.is_share ? " %" : "");
  }

  std::string drawn() const {
    std::string text = format(R"(<text x="{:.0f}" y="24" font-size="14">{}, against size in {}</text>
)",
                              kLeft, figure_.title, units_[0]);
    for (int i = 0; x_step_ * i <= x_high_ * 1.0001; ++i) {
      double x = x_at(x_step_ * i);
      text += line(x, kTop, x, kBottom);
      text += tick(x, kBottom + 18, "middle", format("{:.{}f}", x_step_ * i, digits_for(x_step_)));
    }
    for (int i = 0; y_low_ + y_step_ * i <= 1 + y_step_ * 0.01; ++i) {
      double quality = y_low_ + y_step_ * i, y = y_of(quality);
      text += line(kLeft, y, kRight, y);
      text += tick(kLeft - 6, y + 4, "end", value_text(quality, 0));
    }
    return text;
  }

 private:
  double x_at(double size) const { return kLeft + size / x_high_ * (kRight - kLeft); }

  static std::string line(double x1, double y1, double x2, double y2) {
    return format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#ddd"/>
)",
                  x1, y1, x2, y2);
  }
  static std::string tick(double x, double y, std::string_view anchor, const std::string& words) {
    return format(R"(<text x="{:.1f}" y="{:.1f}" font-size="11" fill="#555" text-anchor="{}">{}</text>
)",
                  x, y, anchor, words);
  }

  const PictureFigure& figure_;
  double y_step_ = 0, y_low_ = 0, x_step_ = 0, x_high_ = 0, unit_ = 1;
  std::vector<std::string_view> units_ = {"B", "kB", "MB", "GB", "TB"};
};

/// A place for a text, and the end of it that is written at.
struct PicturePlace {
  PictureBox box;
  double x;
  std::string_view anchor;
};

/// Where a label of a point at (x, y) may be, the best place first.
std::vector<PicturePlace> places_of(double x, double y, double width) {
  std::vector<PicturePlace> places;
  auto add = [&](double left, double middle, double at, std::string_view anchor) {
    PictureBox box{left, middle - kLine / 2, left + width, middle + kLine / 2};
    if (box.left >= kLeft && box.right <= kWidth && box.top >= kLabelTop && box.bottom <= kBottom)
      places.push_back({box, at, anchor});
  };
  const double right = x + kRadius + 4, left = x - kRadius - 4;
  for (int i = 0; i < kMostLines; ++i) {
    for (double down : {-kLine * i, kLine * i}) {
      if (i > 0) add(x - width / 2, y + down, x, "middle");
      add(right, y + down, right, "start");
      add(left - width, y + down, left, "end");
    }
  }
  return places;
}

std::string label_text(const PicturePlace& place, double x, double y, const std::string& words) {
  double middle = (place.box.top + place.box.bottom) / 2;
  std::string text;
  if (std::abs(middle - y) > kLine * 1.1) {
    double end = middle > y ? place.box.top : place.box.bottom;
    text += format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#999"/>
)",
                   x, y, place.x, end);
  }
  return text + format(R"(<text x="{:.1f}" y="{:.1f}" font-size="12" text-anchor="{}">{}</text>
)",
                       place.x, middle + 4, place.anchor, words);
}

}  // namespace

std::string quality_picture(const std::vector<MeasuredVariant>& variants) {
  const PictureFigure* figure = nullptr;
  std::vector<PicturePoint> points;
  for (const PictureFigure& each : kPictureFigures) {
    std::vector<PicturePoint> found = points_by(each, variants);
    if (found.size() > points.size()) {
      points = std::move(found);
      figure = &each;
    }
  }
  if (figure == nullptr) return "";
  PictureFrame frame(*figure, points);
  std::string text = format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" font-family="sans-serif">
<rect width="{0:.0f}" height="{1:.0f}" fill="#fff"/>
)",
      kWidth, kHeight);
  text += frame.drawn();
  std::vector<PictureBox> taken;
  for (const PicturePoint& each : points) {
    double x = frame.x_of(each.bytes), y = frame.y_of(each.quality);
    taken.push_back({x - kRadius - 2, y - kRadius - 2, x + kRadius + 2, y + kRadius + 2});
  }
  std::string labels;
  for (const PicturePoint& each : points) {
    double x = frame.x_of(each.bytes), y = frame.y_of(each.quality);
    text += format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.0f}" fill="#1f6feb"/>
)",
                   x, y, kRadius);
    std::string words = format("{}: {}, {}", each.name, format_bytes(each.bytes), frame.value_text(each.quality, 1));
    std::vector<PicturePlace> places = places_of(x, y, kLetter * static_cast<double>(words.size()));
    auto is_free = [&](const PicturePlace& each_place) {
      return std::ranges::none_of(taken, [&](const PictureBox& other) { return each_place.box.overlaps(other); });
    };
    auto place = std::ranges::find_if(places, is_free);
    if (place == places.end()) continue;  // a point without a label says more than two labels on each other
    taken.push_back(place->box);
    labels += label_text(*place, x, y, words);
  }
  return text + labels + "</svg>\n";
}

}  // namespace argosy
