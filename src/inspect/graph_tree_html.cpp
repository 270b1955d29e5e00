#include "inspect/graph_tree_html.h"

#include <algorithm>
#include <map>

#include "base/counts.h"
#include "base/text.h"
#include "inspect/graph_html.h"
#include "inspect/html_text.h"

namespace argosy {
namespace {

constexpr size_t kMaxRows = 20'000;
constexpr size_t kMaxFacts = 8;  // of a node: weights and integers that are shown

class TreePage {
 public:
  TreePage(const OnnxModel& model, const GraphReport& report)
      : model_(model), parts_(report.parts), weights_(model.graph.values.size(), OnnxNode::kNothing) {
    for (uint32_t i = 0; i < model.graph.initializers.size(); ++i) {
      if (uint32_t value = model.graph.initializers[i]; value != OnnxNode::kNothing) weights_[value] = i;
    }
    for (const FoundStructure& each : report.found) found_.emplace(each.node, &each);
    layers_ = layers_of_parts(parts_);
    has_list_.assign(parts_.size(), false);
    for (size_t i = parts_.size(); i-- > 1;) {
      if (has_list_[i] || is_numbered(parts_[i])) has_list_[parts_[i].parent] = true;
    }
  }

  std::string write() {
    write_items(0);
    if (left_out_ > 0) {
      page_ += format("<p>{} left out: this page shows the first {} rows.</p>\n", count_of(left_out_, "node"),
                      format_count(kMaxRows));
    }
    return std::move(page_);
  }

 private:
  void write_items(uint32_t index) {
    const GraphPart& part = parts_[index];
    std::map<uint32_t, AlikeParts> alike;  // by the first of them; the others are not shown
    for (AlikeParts& each : alike_parts(parts_, index)) {
      uint32_t first = each.parts[0];
      alike.emplace(first, std::move(each));
    }
    bool is_in_table = false;
    auto set_table = [&](bool wanted) {
      if (wanted != is_in_table) page_ += wanted ? "<table class=\"nodes\">\n" : "</table>\n";
      is_in_table = wanted;
    };
    for (GraphPart::Item item : part.items) {
      std::optional<uint32_t> node = item.is_part ? only_node(item.index) : item.index;
      auto group = item.is_part ? alike.find(item.index) : alike.end();
      if (item.is_part && is_numbered(parts_[item.index])) {
        if (group == alike.end()) continue;
        node.reset();
      }
      if (!takes_row(item.is_part ? parts_[item.index].nodes : 1)) continue;
      set_table(node.has_value());
      if (node)
        write_node(*node);
      else if (group != alike.end())
        write_alike(part, group->second);
      else
        write_part(item.index, html_text(parts_[item.index].name), count_of(parts_[item.index].nodes, "node"));
    }
    set_table(false);
  }

  /// Of a part with one node, that one: its name says in which part it is.
  std::optional<uint32_t> only_node(uint32_t part) const {
    if (parts_[part].nodes != 1) return std::nullopt;
    while (parts_[part].items[0].is_part) part = parts_[part].items[0].index;
    return parts_[part].items[0].index;
  }

  void write_alike(const GraphPart& list, const AlikeParts& alike) {
    std::string name = html_text(list.name), about = count_of(parts_[alike.parts[0]].nodes, "node");
    if (alike.parts.size() > 1) {
      about = format("the same {} {}; here {} {}", about, alike.parts.size() == 2 ? "in both" : "in each", name,
                     html_text(parts_[alike.parts[0]].name));
    }
    write_part(alike.parts[0], format("{} {}", name, alike.numbers), about);
  }

  /// What leads to layers is open, layers are closed.
  void write_part(uint32_t part, std::string_view label, std::string_view about) {
    bool is_open = has_list_[part] && layers_[part] == 0;
    page_ += format("<details{}><summary><b>{}</b>: {}</summary>\n", is_open ? " open" : "", label, about);
    write_items(part);
    page_ += "</details>\n";
  }

  /// Whether another row may be written; if not, its nodes are left out.
  bool takes_row(uint64_t nodes) {
    if (rows_ < kMaxRows) {
      ++rows_;
      return true;
    }
    left_out_ += nodes;
    return false;
  }

  void write_node(uint32_t index) {
    const OnnxNode& node = model_.graph.nodes[index];
    const auto& [domain, op] = model_.graph.ops[node.op];
    std::vector<std::string> facts;
    for (uint32_t input : node.inputs) {
      if (input == OnnxNode::kNothing || weights_[input] == OnnxNode::kNothing) continue;
      const OnnxInitializer& tensor = model_.initializers[weights_[input]];
      facts.push_back(format("{} {}", html_text(tensor.name), html_text(type_text(tensor))));
    }
    for (const auto& [name, value] : node.integers) facts.push_back(format("{}={}", html_text(name), value));
    if (size_t all = facts.size(); all > kMaxFacts) {
      facts.resize(kMaxFacts);
      facts.push_back(format("{} more", all - kMaxFacts));
    }
    auto found = found_.find(index);
    std::string mark;
    if (found != found_.end()) {
      mark = format("<i class=\"{}\">{}{}</i>", found->second->is_op ? "op" : "out", to_text(found->second->kind),
                    found->second->is_op ? "" : ", written out");
    }
    page_ += format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", html_text(onnx_op_name(domain, op)),
                    mark, html_text(node.name), join(facts, "; "));
  }

  const OnnxModel& model_;
  const std::vector<GraphPart>& parts_;
  std::vector<uint32_t> weights_;  // by value: an index of initializers, or kNothing
  std::map<uint32_t, const FoundStructure*> found_;
  std::vector<uint32_t> layers_;  // by part
  std::vector<bool> has_list_;    // by part: whether numbered parts are somewhere in it
  size_t rows_ = 0;
  uint64_t left_out_ = 0;
  std::string page_;
};

}  // namespace

std::string graph_tree_html(const OnnxModel& model, const GraphReport& report) {
  return TreePage(model, report).write();
}

}  // namespace argosy
