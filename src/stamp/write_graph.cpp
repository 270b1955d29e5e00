#include <set>
#include <unordered_map>

#include "base/text.h"
#include "stamp/graph.h"

namespace argosy::stamp {
namespace {

std::string quote(std::string_view text) { return JsonWriter().value(text).take(); }

/// Text of a list, built entry by entry.
class ListText {
 public:
  explicit ListText(char open = '[', char close = ']') : text_(1, open), close_(close) {}
  void add(std::string_view entry) {
    if (text_.size() > 1) text_ += ',';
    text_ += entry;
  }
  std::string take() { return std::move(text_) + close_; }

 private:
  std::string text_;
  char close_;
};

class Writer {
 public:
  Writer(const Graph& graph, JsonView pattern, const std::vector<std::string>& modules)
      : graph_(graph), pattern_(pattern), modules_(modules) {}

  Result<GraphTexts> write() {
    order_nodes();
    GraphTexts texts;
    ListText root('{', '}');
    for (auto [key, member] : pattern_.members()) {
      std::string text;
      if (key == "graph_module") {
        ARGOSY_TRY(text, module(member));
      } else {
        text = JsonWriter().value(member).take();
      }
      root.add(quote(key) + ':' + text);
    }
    texts.graph = root.take();
    texts.companion = companion();
    return texts;
  }

 private:
  const std::string& name(uint32_t value) const { return graph_.values[value].name; }

  std::string filled(const std::string& text, const std::vector<uint32_t>& mentions, const std::string& own_name,
                     const std::string& own_path) const {
    std::string out;
    size_t next = 0;
    for (char c : text) {
      if (c == kMention) {
        out += quote(name(mentions[next++]));
      } else if (c == kOwnName) {
        out += quote(own_name);
      } else if (c == kOwnPath) {
        out += quote(own_path);
      } else {
        out += c;
      }
    }
    return out;
  }

  // Sizes are computed where they are needed first.
  void order_nodes() {
    for (const Node& node : graph_.nodes) {
      for (uint32_t value : node.mentions) need(value);
      ordered_.push_back(&node);
    }
    for (const Output& output : graph_.outputs) {
      if (output.value != kNone) need(output.value);
    }
  }

  void need(uint32_t value) {
    const std::string& size = graph_.values[value].size;
    if (size.empty() || !computed_.insert(value).second) return;
    const Node& node = graph_.sizes.at(size);
    for (uint32_t mention : node.mentions) need(mention);
    ordered_.push_back(&node);
  }

  Result<std::string> module(JsonView pattern) const {
    ListText out('{', '}');
    for (auto [key, member] : pattern.members()) {
      std::string text;
      if (key == "graph") {
        text = graph(member);
      } else if (key == "signature") {
        text = signature(member);
      } else if (key == "module_call_graph") {
        ARGOSY_TRY(text, module_calls(member));
      } else {
        text = JsonWriter().value(member).take();
      }
      out.add(quote(key) + ':' + text);
    }
    return out.take();
  }

  std::string graph(JsonView pattern) const {
    ListText out('{', '}');
    for (auto [key, member] : pattern.members()) {
      ListText list;
      if (key == "inputs") {
        for (const Input& input : graph_.inputs) list.add(filled(input.text, {input.value}, {}, {}));
      } else if (key == "outputs") {
        for (const Output& output : graph_.outputs) list.add(filled(output.text, {output.value}, {}, {}));
      } else if (key == "nodes") {
        for (const Node* node : ordered_) list.add(filled(node->text, node->mentions, node->name, {}));
      } else if (member.is_object()) {
        list = ListText('{', '}');
        for (const Value& value : graph_.values) {
          if (value.table == key) list.add(quote(value.name) + ':' + value.meta);
        }
      } else {
        out.add(quote(key) + ':' + JsonWriter().value(member).take());
        continue;
      }
      out.add(quote(key) + ':' + list.take());
    }
    return out.take();
  }

  std::string signature(JsonView pattern) const {
    ListText out('{', '}');
    for (auto [key, member] : pattern.members()) {
      ListText list;
      if (key == "input_specs") {
        for (const Input& input : graph_.inputs) list.add(filled(input.spec, {input.value}, {}, input.stored));
      } else if (key == "output_specs") {
        for (const Output& output : graph_.outputs) list.add(filled(output.spec, {output.value}, {}, {}));
      } else {
        out.add(quote(key) + ':' + JsonWriter().value(member).take());
        continue;
      }
      out.add(quote(key) + ':' + list.take());
    }
    return out.take();
  }

  Result<std::string> module_calls(JsonView pattern) const {
    ListText out;
    for (JsonView entry : pattern.items()) {
      if (!text_at(entry, "fqn").empty()) continue;
      ListText root('{', '}');
      for (auto [key, member] : entry.members()) {
        if (key != "signature" || !member.is_object()) {
          root.add(quote(key) + ':' + JsonWriter().value(member).take());
          continue;
        }
        ListText call('{', '}');
        for (auto [part, content] : member.members()) {
          std::string text = JsonWriter().value(content).take();
          if (part == "in_spec") {
            ARGOSY_TRY(text, spec(content, pattern_names(member), input_names()));
          } else if (part == "out_spec") {
            ARGOSY_TRY(text, spec(content, {}, output_names()));
          } else if (part == "forward_arg_names") {
            ListText names;
            for (const std::string& each : input_names()) names.add(quote(each));
            text = names.take();
          }
          call.add(quote(part) + ':' + text);
        }
        root.add(quote(key) + ':' + call.take());
      }
      out.add(root.take());
    }
    for (const std::string& each : modules_) out.add(format("{{\"fqn\":{},\"signature\":null}}", quote(each)));
    return out.take();
  }

  static std::vector<std::string> pattern_names(JsonView signature) {
    std::vector<std::string> names;
    for (JsonView each : signature.find("forward_arg_names").items()) names.emplace_back(each.as_string().value_or(""));
    return names;
  }

  std::vector<std::string> input_names() const {
    std::vector<std::string> names;
    for (const Input& input : graph_.inputs) {
      if (input.kind == "user_input") names.push_back(name(input.value));
    }
    return names;
  }

  std::vector<std::string> output_names() const {
    std::vector<std::string> names;
    for (const Output& output : graph_.outputs) {
      std::string each = output.path;
      for (char& c : each) {
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      }
      names.push_back(std::move(each));
    }
    return names;
  }

  /// torch's description of a call: the one dict in it is of leaves by name.
  static Result<std::string> spec(JsonView content, const std::vector<std::string>& expected,
                                  const std::vector<std::string>& names) {
    constexpr std::string_view kContext = "\"context\": \"[", kChildren = "\"children_spec\": [";
    constexpr std::string_view kLeaf = R"({"type": null, "context": null, "children_spec": []})";
    std::string text(content.as_string().value_or(""));
    size_t dict = text.find("builtins.dict");
    size_t context = text.find(kContext, dict);
    size_t children = text.find(kChildren, context);
    size_t end = text.rfind(std::string(kLeaf)) + kLeaf.size();
    bool is_known = dict != std::string::npos && context != std::string::npos && children != std::string::npos &&
                    text.find(kLeaf) != std::string::npos && text.find("builtins.dict", dict + 1) == std::string::npos;
    for (const std::string& name : expected) is_known = is_known && text.find(name) != std::string::npos;
    if (!is_known) return fail(ErrorCode::kUnsupportedFeature, "torch describes the call of the graph in another way");
    std::string out = text.substr(0, context + kContext.size());
    for (size_t i = 0; i < names.size(); ++i) out += format("{}\\\"{}\\\"", i == 0 ? "" : ", ", names[i]);
    out += "]\", " + std::string(kChildren);
    for (size_t i = 0; i < names.size(); ++i) out += format("{}{}", i == 0 ? "" : ", ", kLeaf);
    return quote(out + text.substr(end));
  }

  std::string companion() const {
    std::unordered_map<uint32_t, uint64_t> storages;  // by root
    ListText stored('{', '}'), places, locations;
    std::map<std::string, size_t> known;
    auto store = [&](uint32_t value) {
      uint32_t root = graph_.values[value].root;
      if (root == kNone) return;
      uint64_t id = storages.emplace(root, storages.size()).first->second;
      stored.add(format("{}:{}", quote(name(value)), id));
    };
    for (const Input& input : graph_.inputs) store(input.value);
    for (const Node* node : ordered_) {
      for (uint32_t value : node->results) store(value);
      if (!node->has_location) {
        places.add("-1");
        continue;
      }
      const Location& at = node->location;
      std::string text = format(R"({{"call":{},"class":{},"file":{},"line":{},"module":{}}})", at.call,
                                quote(at.class_name), quote(at.file), at.line, quote(at.module));
      auto [entry, is_new] = known.emplace(text, known.size());
      if (is_new) locations.add(text);
      places.add(std::to_string(entry->second));
    }
    return format(R"({{"locations":{},"nodes":{},"storage_count":{},"storages":{},"subgraphs":{{}}}})",
                  locations.take(), places.take(), storages.size(), stored.take());
  }

  const Graph& graph_;
  JsonView pattern_;
  const std::vector<std::string>& modules_;
  std::vector<const Node*> ordered_;
  std::set<uint32_t> computed_;
};

}  // namespace

Result<GraphTexts> write_graph(const Graph& graph, JsonView pattern, const std::vector<std::string>& modules) {
  return Writer(graph, pattern, modules).write();
}

}  // namespace argosy::stamp
