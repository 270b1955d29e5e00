#include "engines/rewrite_json.h"

#include <algorithm>
#include <map>

namespace argosy::engines {
namespace {

/// Changes below one object, by the first name of their path.
struct Below {
  const JsonChange::Value* value = nullptr;  // of the member itself
  std::vector<const JsonChange*> deeper;
};

void write_value(const JsonChange::Value& value, JsonWriter& out) {
  std::visit(
      [&](const auto& each) {
        if constexpr (std::is_same_v<std::decay_t<decltype(each)>, std::nullptr_t>) {
          out.null();
        } else {
          out.value(each);
        }
      },
      value);
}

void write_object(JsonView object, std::span<const JsonChange* const> changes, size_t depth, JsonWriter& out) {
  std::map<std::string, Below, std::less<>> below;
  for (const JsonChange* change : changes) {
    Below& entry = below[change->path[depth]];
    if (change->path.size() == depth + 1) {
      entry.value = &change->value;
    } else {
      entry.deeper.push_back(change);
    }
  }
  auto write_member = [&](std::string_view name, JsonView old, const Below& change) {
    if (change.value != nullptr) {
      if (std::holds_alternative<std::nullptr_t>(*change.value)) return;
      out.key(name);
      write_value(*change.value, out);
    } else {
      out.key(name);
      write_object(old, change.deeper, depth + 1, out);
    }
  };
  out.begin_object();
  for (auto [name, value] : object.members()) {
    auto found = below.find(name);
    if (found == below.end()) {
      out.key(name).value(value);
      continue;
    }
    write_member(name, value, found->second);
    below.erase(found);
  }
  for (const auto& [name, change] : below) write_member(name, {}, change);
  out.end_object();
}

}  // namespace

std::string rewritten(JsonView object, std::span<const JsonChange> changes) {
  std::vector<const JsonChange*> all;
  for (const JsonChange& change : changes) all.push_back(&change);
  JsonWriter out(JsonWriter::Layout::kIndented);
  write_object(object, all, 0, out);
  return out.take() + "\n";
}

}  // namespace argosy::engines
