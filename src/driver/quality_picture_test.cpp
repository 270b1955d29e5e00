#include "driver/quality_picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <regex>

#include "base/text.h"

namespace argosy {
namespace {

MeasuredVariant measured(std::string name, uint64_t bytes, std::string quality) {
  return {std::move(name), bytes, true, std::move(quality)};
}

size_t count(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

struct Label {
  double left, middle, right;
};

/// The labels of points, by their font size; as wide as a wide font makes them.
std::vector<Label> labels_of(const std::string& svg) {
  std::vector<Label> labels;
  const std::regex pattern(R"re(<text x="([0-9.]+)" y="([0-9.]+)" font-size="12" text-anchor="([a-z]+)">([^<]*)<)re");
  for (std::sregex_iterator it(svg.begin(), svg.end(), pattern), end; it != end; ++it) {
    double x = std::stod((*it)[1]), width = 6.5 * static_cast<double>((*it)[4].length());
    double left = (*it)[3] == "end" ? x - width : (*it)[3] == "middle" ? x - width / 2 : x;
    labels.push_back({left, std::stod((*it)[2]), left + width});
  }
  return labels;
}

void expect_apart(const std::string& svg, size_t expected) {
  std::vector<Label> labels = labels_of(svg);
  ASSERT_EQ(labels.size(), expected) << svg;
  for (size_t i = 0; i < labels.size(); ++i) {
    EXPECT_TRUE(labels[i].left >= 0 && labels[i].right <= 600 && labels[i].middle > 10 && labels[i].middle < 390) << i;
    for (size_t j = 0; j < i; ++j) {
      bool is_beside = labels[i].right <= labels[j].left || labels[j].right <= labels[i].left;
      EXPECT_TRUE(is_beside || std::abs(labels[i].middle - labels[j].middle) >= 14) << i << " and " << j << "\n" << svg;
    }
  }
}

TEST(QualityPicture, has_a_point_and_a_label_for_each_variant) {
  const std::vector<MeasuredVariant> variants = {
      measured("fp32", 542000000, ""), measured("fp16", 271000000, R"({"agreement": 0.997, "kl": 4e-6})"),
      measured("q4", 98000000, R"({"agreement": 0.792})"), measured("q4f16", 84000000, R"({"agreement": 0.791})"),
      measured("q8", 150000000, R"({"agreement": 0.971})")};
  std::string svg = quality_picture(variants);
  EXPECT_EQ(count(svg, "<circle"), 5u);
  EXPECT_NE(svg.find("best tokens that are the model's, against size in MB"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">q4: 98.0 MB, 79.2 %<"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">fp32: 542 MB, 100.0 %<"), std::string::npos) << svg;
  expect_apart(svg, 5);
  EXPECT_EQ(svg, quality_picture(variants));
}

TEST(QualityPicture, keeps_labels_apart_where_points_are_at_one_place) {
  std::vector<MeasuredVariant> variants;
  for (const char* name : {"fp32", "fp16", "q4", "q4f16", "q8"})
    variants.push_back(measured(name, 1000, R"({"least_cosine": 0.99999})"));
  expect_apart(quality_picture(variants), 5);
  // What is not 1 is not shown as 1.
  EXPECT_EQ(quality_picture(variants).find("1.0000<"), std::string::npos);
  for (MeasuredVariant& each : variants) each.quality = R"({"least_cosine": 1})";
  expect_apart(quality_picture(variants), 5);
  for (size_t i = 0; i < variants.size(); ++i) {
    variants[i].bytes = 1 + i;
    variants[i].quality = format(R"({{"word_error": {}}})", 0.5 * static_cast<double>(i));
  }
  std::string svg = quality_picture(variants);
  EXPECT_NE(svg.find("words that are the model's, against size in B"), std::string::npos) << svg;
  expect_apart(svg, 5);
}

TEST(QualityPicture, is_empty_where_nothing_can_be_compared) {
  EXPECT_EQ(quality_picture({}), "");
  EXPECT_EQ(quality_picture({measured("fp32", 10, "")}), "");
  EXPECT_EQ(quality_picture({measured("fp32", 10, ""), measured("q4", 5, "")}), "");
  EXPECT_EQ(quality_picture({measured("q8", 10, R"({"kl": 1})"), measured("q4", 5, "no json")}), "");
  MeasuredVariant unchecked = measured("fp32", 10, "");
  unchecked.is_full = false;
  EXPECT_EQ(quality_picture({unchecked, measured("q4", 5, R"({"agreement": 0.5})")}), "");
  // Float16 that was not measured is not as good as the model by its name.
  EXPECT_EQ(quality_picture({measured("fp16", 10, ""), measured("q4", 5, R"({"agreement": 0.5})")}), "");
}

TEST(QualityPicture, takes_the_figure_that_most_variants_have) {
  std::string svg =
      quality_picture({measured("fp16", 10, R"({"agreement": 0.9})"),
                       measured("q8", 5, R"({"agreement": 0.8, "least_cosine": 0.7})"), measured("fp32", 20, "")});
  EXPECT_NE(svg.find("best tokens"), std::string::npos) << svg;
  EXPECT_EQ(count(svg, "<circle"), 3u);
}

}  // namespace
}  // namespace argosy
