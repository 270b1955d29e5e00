#include <unordered_map>

#include "base/text.h"
#include "stamp/expression.h"
#include "stamp/graph.h"

namespace argosy::stamp {
namespace {

constexpr std::string_view kTables[] = {"tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values",
                                        "custom_obj_values"};

std::string text_of(JsonView view) { return JsonWriter().value(view).take(); }

/// The expression of a size; empty if it is none, or one that depends on values of tensors.
std::string expression_of(JsonView size) {
  if (JsonView number = size.find("as_int"); number.is_valid()) return text_of(number);
  std::string text = text_at(size.find("as_expr"), "expr_str");
  return text.find("'u") == std::string::npos ? canonical_expression(text) : std::string();
}

bool computes_sizes(std::string_view target) {
  return target == "torch.ops.aten.sym_size.int" || target.starts_with("_operator.") ||
         target.starts_with("torch.sym_") || target.starts_with("math.");
}

class Reader {
 public:
  Reader(JsonView document, JsonView companion, const Paths& paths)
      : module_(document.find("graph_module")), graph_(module_.find("graph")), companion_(companion), paths_(paths) {}

  Result<Graph> read() {
    if (companion_.find("subgraphs").size() > 0) return refuse_to_stamp("the graph has sub-graphs");
    for (std::string_view table : kTables) {
      for (auto [name, meta] : graph_.find(table).members()) {
        Value value{
            .name = std::string(name), .table = std::string(table), .meta = with_canonical_expressions(text_of(meta))};
        if (table == "sym_int_values") expressions_[value.name] = expression_of(meta);
        known_.emplace(value.name, static_cast<uint32_t>(out_.values.size()));
        out_.values.push_back(std::move(value));
      }
    }
    ARGOSY_TRY_STATUS(read_inputs());
    ARGOSY_TRY_STATUS(read_nodes());
    ARGOSY_TRY_STATUS(read_outputs());
    read_storages();
    return std::move(out_);
  }

 private:
  // The JSON with a mark for each name of a value, and these values.
  void mark(JsonView view, std::string& text, std::vector<uint32_t>& mentions, std::string_view path = {}) {
    if (view.is_object()) {
      auto [key, only] = view.only_member();
      bool may_be_value = key == "name" || key == "as_name";
      text += '{';
      bool first = true;
      for (auto [name, member] : view.members()) {
        if (!std::exchange(first, false)) text += ',';
        text += JsonWriter().value(name).take() + ':';
        std::optional<std::string_view> word = member.as_string();
        auto value = may_be_value && word ? known_.find(std::string(*word)) : known_.end();
        if (value != known_.end()) {
          text += kMention;
          mentions.push_back(value->second);
        } else if (word && !path.empty() && *word == path && name.ends_with("_name")) {
          text += kOwnPath;
        } else {
          mark(member, text, mentions, path);
        }
      }
      text += '}';
    } else if (view.is_array()) {
      text += '[';
      bool first = true;
      for (JsonView item : view.items()) {
        if (!std::exchange(first, false)) text += ',';
        mark(item, text, mentions, path);
      }
      text += ']';
    } else {
      text += text_of(view);
    }
  }

  Status read_inputs() {
    JsonView listed = graph_.find("inputs"), specs = module_.find("signature").find("input_specs");
    if (listed.size() != specs.size()) return refuse_to_stamp("some of the graph's inputs are constants");
    auto spec = specs.items().begin();
    for (JsonView item : listed.items()) {
      auto [kind, content] = (*spec).only_member();
      Input input{.kind = std::string(kind)};
      if (kind == "parameter" || kind == "buffer" || kind == "tensor_constant") {
        input.stored = input.path = text_at(content, input.kind + "_name");
        if (std::string prefix = lifted_prefix(input.stored); !prefix.empty()) {
          prefix.back() = '.';
          input.path = format("{}#{}", prefix, lifted_[prefix]++);
        }
      } else if (kind != "user_input") {
        return refuse_to_stamp(format("inputs of the kind {}", quoted(kind)));
      }
      std::vector<uint32_t> mentions, same;
      mark(item, input.text, mentions);
      mark(*spec, input.spec, same, input.stored);
      if (mentions.size() != 1 || mentions != same) return refuse_to_stamp("an input that is no single value");
      input.value = mentions[0];
      Value& value = out_.values[input.value];
      value.input = static_cast<uint32_t>(out_.inputs.size());
      if (input.path.empty()) {
        auto path = paths_.inputs.find(value.name);
        input.path = path == paths_.inputs.end() ? value.name : path->second;
      }
      out_.inputs.push_back(std::move(input));
      ++spec;
    }
    return {};
  }

  Status read_nodes() {
    read_locations();
    JsonView places = companion_.find("nodes");
    if (places.size() != graph_.find("nodes").size())
      return refuse_to_stamp("the companion has another number of nodes");
    auto place = places.items().begin();
    for (JsonView item : graph_.find("nodes").items()) {
      Node node{.name = text_at(item, "name")};
      size_t index = static_cast<size_t>((*place).as_integer().value_or(-1));
      if (index < locations_.size()) {
        node.location = locations_[index];
        node.has_location = true;
      }
      ++place;
      mark_node(item, node);
      if (is_size(text_at(item, "target"), node)) {
        add_size(std::move(node));
        continue;
      }
      for (uint32_t i = 0; i < node.results.size(); ++i) {
        out_.values[node.results[i]].node = static_cast<uint32_t>(out_.nodes.size());
        out_.values[node.results[i]].result = i;
      }
      for (uint32_t& mention : node.mentions) mention = same_size(mention);
      out_.nodes.push_back(std::move(node));
    }
    return {};
  }

  void mark_node(JsonView item, Node& node) {
    node.text = "{";
    for (auto [key, member] : item.members()) {
      if (node.text.size() > 1) node.text += ',';
      node.text += JsonWriter().value(key).take() + ':';
      if (key == "name") {
        node.text += kOwnName;
      } else if (key == "outputs") {
        mark(member, node.text, node.results);
      } else {
        mark(member, node.text, node.mentions);
      }
      if (key == "outputs") node.mentions.insert(node.mentions.end(), node.results.begin(), node.results.end());
    }
    node.text += '}';
  }

  bool is_size(std::string_view target, const Node& node) const {
    if (node.results.size() != 1 || !computes_sizes(target)) return false;
    for (uint32_t mention : node.mentions) {
      const Value& value = out_.values[mention];
      bool known = value.input != kNone || !value.size.empty() || mention == node.results[0];
      if (!known) return false;
    }
    auto found = expressions_.find(out_.values[node.results[0]].name);
    return found != expressions_.end() && !found->second.empty();
  }

  void add_size(Node node) {
    Value& value = out_.values[node.results[0]];
    value.size = expressions_[value.name];
    for (uint32_t& mention : node.mentions) mention = same_size(mention);
    if (by_size_.emplace(value.size, node.results[0]).second) out_.sizes.emplace(value.size, std::move(node));
  }

  uint32_t same_size(uint32_t value) const {
    auto found = by_size_.find(out_.values[value].size);
    return found == by_size_.end() ? value : found->second;
  }

  void read_locations() {
    for (JsonView item : companion_.find("locations").items()) {
      locations_.push_back({text_at(item, "file"), text_at(item, "module"), text_at(item, "class"),
                            item.find("line").as_integer().value_or(0), item.find("call").as_integer().value_or(0)});
    }
  }

  Status read_outputs() {
    JsonView listed = graph_.find("outputs"), specs = module_.find("signature").find("output_specs");
    if (listed.size() != specs.size() || listed.size() != paths_.outputs.size())
      return refuse_to_stamp("not all of the graph's outputs are a caller's");
    auto spec = specs.items().begin();
    for (JsonView item : listed.items()) {
      if ((*spec).only_member().first != "user_output")
        return refuse_to_stamp("the graph changes its inputs or weights");
      Output output{.path = paths_.outputs[out_.outputs.size()]};
      std::vector<uint32_t> mentions, same;
      mark(item, output.text, mentions);
      mark(*spec, output.spec, same);
      if (mentions.size() > 1 || mentions != same) return refuse_to_stamp("an output that is no single value");
      if (!mentions.empty()) output.value = same_size(mentions[0]);
      out_.outputs.push_back(std::move(output));
      ++spec;
    }
    return {};
  }

  // Values in the order of the graph: inputs, then results of nodes.
  void read_storages() {
    std::unordered_map<std::string_view, int64_t> storages;
    for (auto [name, storage] : companion_.find("storages").members()) {
      if (std::optional<int64_t> id = storage.as_integer()) storages.emplace(name, *id);
    }
    std::unordered_map<int64_t, uint32_t> first;
    auto place = [&](uint32_t value) {
      auto storage = storages.find(out_.values[value].name);
      if (storage != storages.end()) out_.values[value].root = first.emplace(storage->second, value).first->second;
    };
    for (const Input& input : out_.inputs) place(input.value);
    for (const Node& node : out_.nodes) {
      for (uint32_t value : node.results) place(value);
    }
  }

  JsonView module_, graph_, companion_;
  const Paths& paths_;
  Graph out_;
  std::unordered_map<std::string, uint32_t> known_;
  std::unordered_map<std::string, std::string> expressions_;  // of sizes, by name
  std::map<std::string, uint32_t> by_size_;                   // the first value of each
  std::map<std::string, uint32_t> lifted_;                    // how many each module has
  std::vector<Location> locations_;
};

}  // namespace

uint32_t Graph::size_value(std::string_view expression) const {
  auto found = sizes.find(std::string(expression));
  return found == sizes.end() ? kNone : found->second.results[0];
}

std::string lifted_prefix(std::string_view stored) {
  constexpr std::string_view kName = "lifted_tensor_";
  size_t at = stored.rfind(kName);
  if (at == std::string_view::npos || (at > 0 && stored[at - 1] != '.')) return {};
  std::string_view number = stored.substr(at + kName.size());
  bool is_number = !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? std::string(stored.substr(0, at + kName.size())) : std::string();
}

Result<Graph> read_graph(JsonView graph, JsonView companion, const Paths& paths) {
  return Reader(graph, companion, paths).read();
}

std::vector<std::string> called_modules(JsonView graph) {
  std::vector<std::string> found;
  for (JsonView entry : graph.find("graph_module").find("module_call_graph").items()) {
    if (std::string name = text_at(entry, "fqn"); !name.empty()) found.push_back(std::move(name));
  }
  return found;
}

}  // namespace argosy::stamp
