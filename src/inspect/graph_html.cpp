#include "inspect/graph_html.h"

#include <algorithm>
#include <tuple>

#include "base/counts.h"
#include "base/text.h"
#include "inspect/graph_tree_html.h"
#include "inspect/html_text.h"

namespace argosy {
namespace {

constexpr size_t kMaxListed = 300;  // rows of each table but the graph's
constexpr size_t kMaxWeights = 40;

constexpr std::string_view kGraphStyle = R"(
body{font:14px/1.45 sans-serif;margin:24px;color:#222;max-width:1200px}
h2{font-size:17px;margin:30px 0 6px}
p{margin:4px 0 8px;color:#555}
table{border-collapse:collapse;margin:4px 0 10px}
td,th{text-align:left;vertical-align:top;padding:2px 14px 2px 0;border-bottom:1px solid #eee}
th{color:#555;font-weight:600}
td.n,th.n{text-align:right}
details{margin:2px 0 2px 14px}
summary{cursor:pointer}
table.nodes{margin-left:18px;font-size:12.5px}
i{font-style:normal;padding:0 6px;border-radius:3px;color:#fff}
i.op{background:#3f7d4e}i.out{background:#b3592e}
)";

/// Rows of cells that are markup already. A column whose heading begins with '#' holds numbers.
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<std::string> headings) : headings_(std::move(headings)) {}
  void add(const std::vector<std::string>& cells) {
    if (++rows_ <= kMaxListed) body_ += row("td", cells);
  }
  std::string text() const {
    if (rows_ == 0) return "<p>none</p>\n";
    std::vector<std::string> headings;
    for (const std::string& each : headings_) headings.push_back(each.substr(each.starts_with('#') ? 1 : 0));
    std::string text = "<table>\n" + row("th", headings) + body_ + "</table>\n";
    if (rows_ > kMaxListed) text += format("<p>{} more left out</p>\n", format_count(rows_ - kMaxListed));
    return text;
  }

 private:
  std::string row(std::string_view tag, const std::vector<std::string>& cells) const {
    std::string text = "<tr>";
    for (size_t i = 0; i < cells.size(); ++i) {
      bool is_number = i < headings_.size() && headings_[i].starts_with('#');
      text += format("<{0}{1}>{2}</{0}>", tag, is_number ? " class=\"n\"" : "", cells[i]);
    }
    return text + "</tr>\n";
  }

  std::vector<std::string> headings_;
  std::string body_;
  size_t rows_ = 0;
};

std::string bracketed(std::string_view type, const std::vector<std::string>& dims) {
  return format("{}[{}]", type, join(dims, ", "));
}

std::string about_html(const OnnxReport& report) {
  const OnnxModel& model = report.model;
  uint64_t nodes = 0, bytes = 0;
  for (const OnnxOpCount& op : model.ops) nodes += op.count;
  for (const DTypeTotal& total : report.totals) bytes += total.bytes;
  std::string text = format("<p>ONNX model, {}, {} of weights. IR version {}", count_of(nodes, "node"),
                            format_bytes(bytes), model.ir_version);
  for (const auto& [domain, version] : model.opset_imports)
    text += format(", opset {} {}", domain.empty() ? "ai.onnx" : html_text(domain), version);
  if (!model.producer_name.empty())
    text += format(", written by {} {}", html_text(model.producer_name), html_text(model.producer_version));
  text += ".</p>\n";
  if (!model.functions.empty())
    text += format("<p>It has {} of its own, which this page does not look into.</p>\n",
                   count_of(model.functions.size(), "function"));
  for (const std::string& warning : report.warnings) text += format("<p>Warning: {}</p>\n", html_text(warning));
  return text;
}

std::string interface_html(const OnnxReport& report, const GraphReport& graph) {
  const OnnxModel& model = report.model;
  std::vector<std::string> of_input(model.inputs.size()), of_output(model.outputs.size());
  for (const CacheState& state : graph.states) {
    if (state.input) of_input[*state.input] = "past state";
    if (state.output) of_output[*state.output] = "present state";
  }
  std::string text;
  for (auto [values, notes, heading] :
       {std::tuple(&model.inputs, &of_input, "input"), std::tuple(&model.outputs, &of_output, "output")}) {
    HtmlTable table({heading, "type", ""});
    for (size_t i = 0; i < values->size(); ++i)
      table.add({html_text((*values)[i].name), html_text(type_text((*values)[i])), (*notes)[i]});
    text += table.text();
  }
  return text;
}

std::string found_html(const std::vector<FoundCount>& found, StructureKind kind) {
  std::vector<std::string> lines;
  for (const FoundCount& each : found) {
    if (each.first.kind != kind) continue;
    if (lines.size() == kMaxListed) {
      lines.emplace_back("more left out");
      break;
    }
    const FoundStructure& first = each.first;
    std::string line = format("{} × {}", format_count(each.count), html_text(first.what));
    if (!first.is_op)
      line += format(" <i class=\"out\">written out</i> {}",
                     first.why.empty() ? "the graph does not show why" : html_text(first.why));
    lines.push_back(std::move(line));
  }
  return lines.empty() ? "none found" : join(lines, "<br>");
}

std::string recognised_html(const GraphReport& graph) {
  HtmlTable table({"where", "#nodes", "attention", "norms", "rotary embeddings"});
  for (const FoundInLayers& each : graph.layers) {
    std::string place = each.layers == 0 ? "outside of layers" : html_text(each.place);
    table.add({place, format_count(each.nodes), found_html(each.found, StructureKind::kAttention),
               found_html(each.found, StructureKind::kNorm), found_html(each.found, StructureKind::kRotary)});
  }
  return "<p>Found by ops and by what nodes compute; counts are of one layer. What is written out in an unusual way is "
         "not "
         "found.</p>\n" +
         table.text();
}

std::string caches_html(const OnnxReport& report, const GraphReport& graph) {
  std::vector<std::string> headings = {"grows along", "#states", "#bytes a token"};
  for (uint64_t tokens : kReportedTokens) headings.push_back(format("#{} tokens", format_count(tokens)));
  HtmlTable sizes(headings);
  for (const CacheTotal& total : graph.caches) {
    std::string per_token = total.dim.empty() ? "" : format_count(total.bytes);
    std::vector<std::string> row = {!total.is_known     ? "not known"
                                    : total.dim.empty() ? "nothing"
                                                        : html_text(total.dim),
                                    format_count(total.states), std::move(per_token)};
    for (uint64_t tokens : kReportedTokens) {
      std::optional<uint64_t> bytes = total.bytes_at(tokens);
      row.push_back(bytes ? format_bytes(*bytes) : "not known");
    }
    sizes.add(row);
  }
  HtmlTable states({"past", "present", "type", "joined by"});
  for (const CacheState& state : graph.states) {
    const OnnxValue& value = state.input ? report.model.inputs[*state.input] : report.model.outputs[*state.output];
    states.add({state.input ? html_text(value.name) : "none",
                state.output ? html_text(report.model.outputs[*state.output].name) : "none",
                html_text(type_text(value)), html_text(state.joined_by)});
  }
  if (graph.states.empty()) return "<p>No inputs are past states, and no outputs present ones, by their names.</p>\n";
  return "<p>Sizes of a batch of one, from dims and types. Which inputs are states is told by their names.</p>\n" +
         sizes.text() + format("<details><summary>{}</summary>\n", count_of(graph.states.size(), "state")) +
         states.text() + "</details>\n";
}

std::string ops_html(const OnnxModel& model) {
  HtmlTable table({"#count", "op", "domain"});
  for (const OnnxOpCount& op : model.ops)
    table.add({format_count(op.count), html_text(op.op_type), op.domain.empty() ? "ai.onnx" : html_text(op.domain)});
  return table.text();
}

std::string weights_html(const OnnxReport& report) {
  HtmlTable totals({"dtype", "#tensors", "#elements", "#bytes"});
  for (const DTypeTotal& total : report.totals)
    totals.add({std::string(to_text(total.dtype)), format_count(total.tensors), format_count(total.elements),
                format_bytes(total.bytes)});
  HtmlTable largest({"#bytes", "type", "name", "file"});
  size_t shown = std::min(kMaxWeights, report.by_size.size());
  for (size_t i = 0; i < shown; ++i) {
    const OnnxInitializer& tensor = report.model.initializers[report.by_size[i]];
    largest.add({format_bytes(tensor.bytes), html_text(type_text(tensor)), html_text(tensor.name),
                 tensor.location.empty() ? "in the model" : html_text(tensor.location)});
  }
  std::string text = totals.text() + "<p>The largest:</p>\n" + largest.text();
  if (shown < report.by_size.size())
    text += format("<p>{} smaller ones left out</p>\n", format_count(report.by_size.size() - shown));
  return text;
}

}  // namespace

std::string type_text(const OnnxValue& value) {
  if (!value.has_shape) return value.type;
  std::vector<std::string> dims;
  for (const OnnxDim& dim : value.shape)
    dims.push_back(dim.value ? std::to_string(*dim.value) : dim.name.empty() ? "?" : dim.name);
  return bracketed(value.type, dims);
}

std::string type_text(const OnnxInitializer& tensor) {
  std::vector<std::string> dims;
  for (int64_t dim : tensor.shape) dims.push_back(std::to_string(dim));
  return bracketed(tensor.type, dims);
}

std::string graph_html(const std::string& title, const OnnxReport& report, const GraphReport& graph) {
  std::string page = page_start(title, title, kGraphStyle) + about_html(report);
  page += "<h2>Interface</h2>\n" + interface_html(report, graph);
  page += "<h2>What was recognised</h2>\n" + recognised_html(graph);
  page += "<h2>Layer by layer</h2>\n" + graph_tree_html(report.model, graph);
  page += "<h2>Caches</h2>\n" + caches_html(report, graph);
  page += "<h2>Ops</h2>\n" + ops_html(report.model);
  page += "<h2>Weights</h2>\n" + weights_html(report);
  return page.append(kPageEnd);
}

}  // namespace argosy
