#include "stamp/stamp.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "stamp/references.h"
#include "stamp/templates.h"

namespace argosy::stamp {
namespace {

/// "linear_12" is the thirteenth "linear".
std::string base_of(const std::string& name) {
  size_t digits = name.find_last_not_of("0123456789");
  bool is_numbered = digits != std::string::npos && digits + 1 < name.size() && digits > 0 && name[digits] == '_';
  return is_numbered ? name.substr(0, digits) : name;
}

/// Names as torch gives them: each kind of node is counted.
class Names {
 public:
  explicit Names(const Graph& pattern) {
    for (const Value& value : pattern.values) plain_.insert(value.name);
    for (const Node& node : pattern.nodes) plain_.insert(node.name);
  }
  void take(const std::string& name) { taken_.insert(name); }
  std::string make(const std::string& like) {
    std::string base = base_of(like);
    auto [next, is_new] = next_.emplace(base, plain_.contains(base) ? 0 : 1);
    for (;;) {
      uint32_t count = next->second++;
      std::string name = count == 0 ? base : format("{}_{}", base, count);
      if (taken_.insert(name).second) return name;
    }
  }

 private:
  std::set<std::string> plain_, taken_;
  std::unordered_map<std::string, uint32_t> next_;
};

/// The name of an input or weight of one layer, for another: "p_model_layers_0_mlp_weight".
Result<std::string> rename(const std::string& name, const LayerPath& path, uint32_t layer) {
  std::string list = path.list;
  std::ranges::replace_if(list, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  std::string before = format("{}_{}", list, path.layer);
  size_t at = name.find(before);
  size_t end = at + before.size();
  if (at == std::string::npos || (end < name.size() && name[end] != '_'))
    return refuse_to_stamp(format("the name {} does not say which layer it is of", quoted(name)));
  return name.substr(0, at) + format("{}_{}", list, layer) + name.substr(end);
}

std::string path_in(const LayerPath& path, uint32_t layer) {
  return format("{}.{}{}{}", path.list, layer, path.rest.empty() ? "" : ".", path.rest);
}

/// Where an entry of a list of inputs, outputs or modules comes from.
struct Entry {
  uint32_t pattern = 0;           // its index there
  std::optional<LayerPath> path;  // there, if it is of a layer
  Home home;                      // in the new graph
};

class Stamper {
 public:
  Stamper(const Graph& pattern, const Layers& layers, const std::vector<Stack>& stacks)
      : pattern_(pattern), layers_(layers), stacks_(stacks), depths_(depths_of(stacks)), names_(pattern) {
    for (const Stack& stack : stacks) {
      Stack wanted = stack;
      wanted.kinds = stack.wanted;
      wanted_depths_.push_back(static_cast<uint32_t>(stack.wanted.size()));
    }
  }

  Result<Stamped> run(const std::vector<std::string>& modules) {
    ARGOSY_TRY(rows_, learn(pattern_, layers_, stacks_));
    ARGOSY_TRY_STATUS(make_inputs());
    ARGOSY_TRY_STATUS(make_nodes());
    Layers placed = Layers::along(layers_, out_.graph);
    ARGOSY_TRY_STATUS(connect(placed));
    ARGOSY_TRY_STATUS(make_outputs(placed));
    ARGOSY_TRY_STATUS(make_modules(modules));
    return std::move(out_);
  }

 private:
  /// The layer of the pattern that a wanted one is like.
  Result<uint32_t> model_of(uint32_t stack, uint32_t layer) const {
    const Stack& it = stacks_[stack];
    for (uint32_t i = layer == 0 ? 0 : 1; i < (layer == 0 ? 1 : it.kinds.size()); ++i) {
      if (it.kinds[i] == it.wanted[layer]) return i;
    }
    return refuse_to_stamp(format("no traced layer is like {}.{}", it.prefix, layer));
  }

  /// Repeats what a list has for each layer; `path` gives the path of an index, `same_group` whether two follow each
  /// other in one list.
  template <class PathOf, class SameGroup>
  Result<std::vector<Entry>> expand(uint32_t count, PathOf path, SameGroup same_group) const {
    std::vector<Entry> entries;
    for (uint32_t i = 0; i < count;) {
      std::optional<LayerPath> start = layers_.split(path(i));
      if (!start) {
        entries.push_back({i++, std::nullopt, {}});
        continue;
      }
      std::map<uint32_t, std::vector<Entry>> by_layer;
      uint32_t last = 0;
      for (uint32_t first = i; i < count; ++i) {
        std::optional<LayerPath> here = layers_.split(path(i));
        // States of one sort may follow those of another, each through all layers.
        if (!here || here->list != start->list || here->layer < last || !same_group(first, i)) break;
        last = here->layer;
        by_layer[here->layer].push_back({i, here, {}});
      }
      for (uint32_t layer = 0; layer < wanted_depths_[start->stack]; ++layer) {
        ARGOSY_TRY(uint32_t model, model_of(start->stack, layer));
        for (Entry entry : by_layer[model]) {
          entry.home = {start->stack, layer};
          entries.push_back(std::move(entry));
        }
      }
    }
    return entries;
  }

  uint32_t add_value(const Value& like, std::string name) {
    Value value = like;
    value.name = std::move(name);
    value.node = value.input = value.root = kNone;
    names_.take(value.name);
    out_.graph.values.push_back(std::move(value));
    return static_cast<uint32_t>(out_.graph.values.size() - 1);
  }

  Status make_inputs() {
    auto path = [&](uint32_t i) -> const std::string& { return pattern_.inputs[i].path; };
    auto same_kind = [&](uint32_t a, uint32_t b) { return pattern_.inputs[a].kind == pattern_.inputs[b].kind; };
    ARGOSY_TRY(std::vector<Entry> entries, expand(static_cast<uint32_t>(pattern_.inputs.size()), path, same_kind));
    uint32_t lifted = 0;
    for (const Entry& entry : entries) {
      Input input = pattern_.inputs[entry.pattern];
      std::string name = pattern_.values[input.value].name;
      if (entry.path) {
        ARGOSY_TRY(name, rename(name, *entry.path, entry.home.layer));
        input.path = path_in(*entry.path, entry.home.layer);
      }
      if (std::string prefix = lifted_prefix(input.stored); !prefix.empty()) {
        if (entry.path) prefix = input.path.substr(0, input.path.rfind(".#")) + '_';
        input.stored = format("{}{}", prefix, lifted++);
        name = base_of(name) + input.stored.substr(prefix.size() - 1);
      } else if (!input.stored.empty()) {
        input.stored = input.path;
      }
      input.value = add_value(pattern_.values[input.value], std::move(name));
      out_.graph.values[input.value].input = static_cast<uint32_t>(out_.graph.inputs.size());
      if (!by_path_.emplace(input.path, static_cast<uint32_t>(out_.graph.inputs.size())).second)
        return refuse_to_stamp(format("two inputs are called {}", quoted(input.path)));
      out_.graph.inputs.push_back(std::move(input));
      out_.inputs.push_back(entry.pattern);
    }
    return {};
  }

  Status make_nodes() {
    std::vector<Row> glue = describe(pattern_, layers_, stacks_, {});
    for (const auto& row : glue) glue_.push_back(row);
    std::set<uint32_t> done;
    for (const Node& node : pattern_.nodes) {
      if (node.home.is_glue()) {
        add_node(glue_[layers_.position(static_cast<uint32_t>(&node - pattern_.nodes.data()))], {});
        continue;
      }
      uint32_t index = node.home.stack;
      if (!done.insert(index).second) continue;
      const Stack& stack = stacks_[index];
      for (uint32_t layer = 0; layer < stack.wanted.size(); ++layer) {
        auto rows = rows_.find({index, stack.wanted[layer], layer == 0});
        if (rows == rows_.end()) return refuse_to_stamp(format("no traced layer is like {}.{}", stack.prefix, layer));
        ARGOSY_TRY(uint32_t model, model_of(index, layer));
        for (const Row& row : rows->second) {
          if (!row.is_shared && !row.in_layer && row.node->location.call > 0 && layer != model) {
            return refuse_to_stamp(
                format("{} is called by a single traced layer like {}.{}", row.module, stack.prefix, layer));
          }
          add_node(row, {index, layer}, model);
        }
      }
    }
    return {};
  }

  void add_node(const Row& row, Home home, uint32_t model = 0) {
    Node node = *row.node;
    node.home = home;
    if (!home.is_glue() && row.in_layer) {
      const std::string& prefix = stacks_[home.stack].prefix;
      node.location.module = format("{}.{}{}{}", prefix, home.layer, row.module.empty() ? "" : ".", row.module);
    }
    if (row.calls_count) node.location.call += static_cast<int64_t>(home.layer) - static_cast<int64_t>(model);
    auto index = static_cast<uint32_t>(out_.graph.nodes.size());
    node.results.clear();
    for (uint32_t i = 0; i < row.node->results.size(); ++i) {
      const Value& like = pattern_.values[row.node->results[i]];
      uint32_t value = add_value(like, names_.make(like.name));
      out_.graph.values[value].node = index;
      out_.graph.values[value].result = i;
      node.results.push_back(value);
    }
    bool named_by_result = node.results.size() == 1 && row.node->name == pattern_.values[row.node->results[0]].name;
    node.name = named_by_result ? out_.graph.values[node.results[0]].name : names_.make(row.node->name);
    rows_of_nodes_.push_back(&row);
    out_.graph.nodes.push_back(std::move(node));
  }

  /// The first way to say a value that means something where it is needed.
  Result<uint32_t> find(const Layers& placed, const std::vector<Reference>& ways, Home home, uint32_t before) {
    for (const Reference& way : ways) {
      if (way.what == Reference::What::kSize) return size_value(way.text);
      std::optional<uint32_t> value = resolve(out_.graph, placed, by_path_, wanted_depths_, way, home);
      if (!value) continue;
      uint32_t node = out_.graph.values[*value].node;
      if (node == kNone || node <= before) return *value;
    }
    return refuse_to_stamp(home.is_glue()
                               ? "a value outside the layers has no counterpart"
                               : format("a value of {}.{} has no counterpart", stacks_[home.stack].prefix, home.layer));
  }

  /// Sizes are computed as in the pattern, from inputs that both graphs have.
  Result<uint32_t> size_value(const std::string& expression) {
    uint32_t known = out_.graph.size_value(expression);
    if (known != kNone) return known;
    auto recipe = pattern_.sizes.find(expression);
    if (recipe == pattern_.sizes.end())
      return refuse_to_stamp(format("the size {} is not computed", quoted(expression)));
    Node node = recipe->second;
    uint32_t result = node.results[0];
    uint32_t value = add_value(pattern_.values[result], names_.make(pattern_.values[result].name));
    node.name = out_.graph.values[value].name;
    node.results = {value};
    for (uint32_t& mention : node.mentions) {
      if (mention == result) {
        mention = value;
        continue;
      }
      const Value& meant = pattern_.values[mention];
      if (!meant.size.empty()) {
        ARGOSY_TRY(mention, size_value(meant.size));
        continue;
      }
      auto input = by_path_.find(pattern_.inputs[meant.input].path);
      if (input == by_path_.end() || out_.graph.values[out_.graph.inputs[input->second].value].meta != meant.meta)
        return refuse_to_stamp(
            format("the size {} is that of an input which the deeper model lacks", quoted(expression)));
      mention = out_.graph.inputs[input->second].value;
    }
    out_.graph.sizes.emplace(expression, std::move(node));
    return value;
  }

  Status connect(const Layers& placed) {
    for (uint32_t i = 0; i < out_.graph.inputs.size(); ++i) {
      uint32_t value = out_.graph.inputs[i].value;
      uint32_t like = pattern_.inputs[out_.inputs[i]].value;
      uint32_t root = pattern_.values[like].root;
      if (root == kNone) continue;
      if (root != like) return refuse_to_stamp("inputs share memory");
      out_.graph.values[value].root = value;
    }
    for (uint32_t i = 0; i < out_.graph.nodes.size(); ++i) {
      Node& node = out_.graph.nodes[i];
      const Row& row = *rows_of_nodes_[i];
      for (uint32_t k = 0; k < node.mentions.size(); ++k) {
        ARGOSY_TRY(node.mentions[k], find(placed, row.mentions[k], node.home, i));
      }
      for (uint32_t k = 0; k < node.results.size(); ++k) {
        if (row.roots[k].empty()) continue;
        ARGOSY_TRY(uint32_t root, find(placed, row.roots[k], node.home, i));
        // Found first by value and not by storage: a value may be an alias of an earlier one.
        out_.graph.values[node.results[k]].root = root == node.results[k] ? root : out_.graph.values[root].root;
      }
    }
    return {};
  }

  Status make_outputs(const Layers& placed) {
    auto path = [&](uint32_t i) -> const std::string& { return pattern_.outputs[i].path; };
    auto any = [](uint32_t, uint32_t) { return true; };
    ARGOSY_TRY(std::vector<Entry> entries, expand(static_cast<uint32_t>(pattern_.outputs.size()), path, any));
    auto last = static_cast<uint32_t>(out_.graph.nodes.size());
    for (const Entry& entry : entries) {
      Output output = pattern_.outputs[entry.pattern];
      Home from;
      if (entry.path) {
        from = {entry.path->stack, entry.path->layer};
        output.path = path_in(*entry.path, entry.home.layer);
      }
      if (output.value != kNone) {
        std::vector<Reference> ways = references(pattern_, layers_, depths_, output.value, from);
        ARGOSY_TRY(output.value, find(placed, ways, entry.home, last));
      }
      out_.graph.outputs.push_back(std::move(output));
      out_.outputs.push_back(entry.pattern);
    }
    return {};
  }

  Status make_modules(const std::vector<std::string>& modules) {
    auto path = [&](uint32_t i) -> const std::string& { return modules[i]; };
    auto any = [](uint32_t, uint32_t) { return true; };
    ARGOSY_TRY(std::vector<Entry> entries, expand(static_cast<uint32_t>(modules.size()), path, any));
    for (const Entry& entry : entries)
      out_.modules.push_back(entry.path ? path_in(*entry.path, entry.home.layer) : modules[entry.pattern]);
    return {};
  }

  const Graph& pattern_;
  const Layers& layers_;
  const std::vector<Stack>& stacks_;
  std::vector<uint32_t> depths_, wanted_depths_;
  std::map<RowsKey, std::vector<Row>> rows_;
  std::vector<Row> glue_;
  std::vector<const Row*> rows_of_nodes_;
  InputIndex by_path_;
  Names names_;
  Stamped out_;
};

}  // namespace

Result<Stamped> stamp(const Graph& pattern, const Layers& layers, const std::vector<Stack>& stacks,
                      const std::vector<std::string>& modules) {
  return Stamper(pattern, layers, stacks).run(modules);
}

}  // namespace argosy::stamp
