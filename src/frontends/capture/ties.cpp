#include "frontends/capture/ties.h"

#include "frontends/pt2/json_field.h"
#include "io/json.h"

namespace argosy {

Result<Ties> Ties::parse(std::string_view text) {
  Ties ties;
  if (text.empty()) return ties;
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse_owned(std::string(text), "ties"));
  JsonField list(document.root(), "ties");
  ARGOSY_TRY_STATUS(list.require_array());
  int64_t index = 0;
  for (JsonView item : list.view().items()) {
    JsonField pair = list.item(item, index++);
    ARGOSY_TRY_STATUS(pair.require_array());
    if (item.size() != 2) return pair.error("expected two names");
    std::string names[2];
    int64_t side = 0;
    for (JsonView each : item.items()) {
      ARGOSY_TRY(std::string_view name, pair.item(each, side).string());
      names[side++] = name;
    }
    const auto& [name, owner] = names;
    if (name == owner || ties.owners_.contains(name)) return pair.error("a name that is tied before");
    if (auto known = ties.owners_.find(owner); known != ties.owners_.end() && known->second != owner)
      return pair.error("tied to a name that is tied itself");
    ties.owners_.emplace(owner, owner);
    ties.owners_.emplace(name, owner);
    std::vector<std::string>& all = ties.names_[owner];
    if (all.empty()) all.push_back(owner);
    all.push_back(name);
  }
  return ties;
}

Result<Ties> Ties::of(const Program& program) {
  auto found = program.attributes.find("capture.ties");
  return parse(found == program.attributes.end() ? std::string_view() : std::string_view(found->second));
}

const std::string* Ties::owner(const std::string& name) const {
  auto found = owners_.find(name);
  return found == owners_.end() ? nullptr : &found->second;
}

}  // namespace argosy
