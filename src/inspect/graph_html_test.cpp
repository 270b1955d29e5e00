#include "inspect/graph_html.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "inspect/graph_testing.h"
#include "inspect/html_text.h"

namespace argosy {
namespace {

std::string page_of(const OnnxModel& model, const std::string& title = "m.onnx") {
  OnnxReport report{model, {}, {}, {}};
  for (uint32_t i = 0; i < model.initializers.size(); ++i) report.by_size.push_back(i);
  return graph_html(title, report, report_graph(model));
}

size_t count_of_text(std::string_view page, std::string_view text) {
  size_t count = 0;
  for (size_t at = page.find(text); at != std::string_view::npos; at = page.find(text, at + 1)) ++count;
  return count;
}

TEST(GraphHtml, equal_layers_are_shown_once) {
  GraphMaker maker;
  for (int i = 0; i < 4; ++i) {
    maker.node("MatMul", {"x", format("w{}", i)}, {format("y{}", i)}, format("model.layers.{}.up/MatMul", i));
    maker.weight(format("w{}", i), {4, i == 3 ? 8 : 4});
  }
  std::string page = page_of(maker.done());
  EXPECT_NE(page.find("<b>layers 0 to 2</b>: the same 1 node in each; here layers 0"), std::string::npos) << page;
  EXPECT_NE(page.find("<b>layers 3</b>: 1 node"), std::string::npos);
  EXPECT_EQ(count_of_text(page, "<td>MatMul</td>"), 2u);
  EXPECT_EQ(count_of_text(page, "<details"), count_of_text(page, "</details>"));
  EXPECT_EQ(count_of_text(page, "<table"), count_of_text(page, "</table>"));
  EXPECT_EQ(page, page_of(maker.done()));
}

TEST(GraphHtml, nothing_of_the_file_is_markup) {
  const std::string hostile = "<script>\"'&";
  GraphMaker maker;
  maker.opset(hostile, 1).input("past" + hostile, {hostile, "2", hostile}).output("present" + hostile, {hostile});
  maker.weight("w" + hostile, {4});
  maker.node(hostile + "." + hostile, {"w" + hostile, "past" + hostile}, {"present" + hostile},
             hostile + ".0." + hostile + "/x" + hostile, {{hostile, 1}});
  maker.node("com.microsoft.GroupQueryAttention", {"a"}, {"b"}, hostile + ".1/x");
  std::string page = page_of(maker.done(), hostile);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("\"'&"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
}

TEST(GraphHtml, huge_graphs_are_cut_and_say_so) {
  GraphMaker maker;
  for (int i = 0; i < 20'500; ++i) maker.node("Neg", {"x"}, {"y"}, "n");
  std::string page = page_of(maker.done());
  EXPECT_EQ(count_of_text(page, "<td>Neg</td>"), 20'000u);
  EXPECT_NE(page.find("500 nodes left out: this page shows the first 20,000 rows."), std::string::npos);
}

TEST(HtmlText, is_text_whatever_it_is_made_of) {
  EXPECT_EQ(html_text("a<b>&\"'\n"), "a&lt;b&gt;&amp;&quot;&#39; ");
  EXPECT_EQ(html_text("\xff"), "&quot;\\xff&quot;");
  EXPECT_LT(html_text(std::string(10'000, 'x')).size(), 500u);
}

}  // namespace
}  // namespace argosy
