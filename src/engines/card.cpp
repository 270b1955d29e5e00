#include "engines/card.h"

#include <algorithm>

#include "base/text.h"
#include "engines/card_head.h"
#include "engines/pipeline_task.h"
#include "engines/sentence_modules.h"
#include "io/file.h"

namespace argosy::engines {
namespace {

constexpr uint64_t kMaxCard = uint64_t{4} << 20;
constexpr size_t kMaxName = 200;

/// "ORG/NAME", as the Hub has names.
bool is_hub_name(std::string_view text) {
  auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  auto is_part = [&](std::string_view part) {
    return !part.empty() && is_word(part.front()) && part.find("..") == std::string_view::npos &&
           std::ranges::all_of(part, [&](char c) { return is_word(c) || c == '-' || c == '.'; });
  };
  size_t slash = text.find('/');
  return slash != std::string_view::npos && text.size() < kMaxName && is_part(text.substr(0, slash)) &&
         is_part(text.substr(slash + 1));
}

bool is_language(std::string_view text) {
  return text.size() <= 20 && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
         });
}

std::vector<std::string> only(std::vector<std::string> values, bool (*is_wanted)(std::string_view)) {
  std::erase_if(values, [&](const std::string& value) { return !is_wanted(value); });
  return values;
}

/// The model's own card. One that cannot be read as text gives a note instead.
SourceCard source_card(const SourceModel& model, std::vector<std::string>& notes) {
  if (!model.has_file(kCardFile)) return {};
  auto text = read_text_file(model.folder / kCardFile, kMaxCard);
  if (text && is_utf8(*text)) return read_source_card(*text);
  notes.push_back(
      format("the model's own card is left out: {}", text ? "it is no UTF-8" : "it cannot be read, or is too large"));
  return {};
}

/// What the model is for: what was asked for, else what its own card says, else what its class does.
std::vector<std::string> pipeline_tag(const SourceModel& model, const SourceCard& original) {
  if (is_pipeline_tag(model.task)) return {model.task};
  std::vector<std::string> told = only(original.values("pipeline_tag"), is_pipeline_tag);
  if (!told.empty()) return {told[0]};
  std::string_view task = pipeline_task(model);
  return task.empty() ? std::vector<std::string>() : std::vector{std::string(task)};
}

/// The card's metadata, which the Hub lists models by.
std::string card_head(const SourceModel& model, const Engine& engine, const SourceCard& original) {
  std::string head = "---\n";
  head += yaml_entry("library_name", {std::string(engine.library)});
  head += yaml_entry("pipeline_tag", pipeline_tag(model, original));
  head += yaml_entry("base_model", is_hub_name(model.name) ? std::vector{model.name}
                                                           : only(original.values("base_model"), is_hub_name));
  for (std::string_view key : {"license", "license_name", "license_link"})
    head += yaml_entry(key, original.values(key));
  head += yaml_entry("language", only(original.values("language"), is_language));
  head += "tags:\n";
  if (engine.backend != engine.name) head += format("- {}\n", engine.backend);
  return head + format("- argosy\n- {}\n---\n\n", engine.name);
}

std::string licence_text(const SourceModel& model, const SourceCard& original) {
  if (!original.values("license").empty())
    return "The licence is the model's own; its licence files, if it has any, are in this folder.\n";
  if (model.has_file(kCardFile))
    return "The model's own card states no licence; ask its publisher before you use or share this.\n";
  return "The model came without its card, so its licence is not known here; look for it where the model is from.\n";
}

/// Where the bundle came from and how.
std::string origin_text(const SourceModel& model, const CardFacts& facts) {
  std::string text = format("`{}`", model.model_class);
  if (is_hub_name(model.name)) text += format(" of [{0}](https://huggingface.co/{0})", model.name);
  if (!model.commit.empty()) text += format(", commit `{}`", model.commit);
  text += format(", exported by argosy {}", facts.argosy_version);
  if (!model.options.empty()) text += format(" with `{}`", join(model.options, " "));
  return text + format(". Check: {}.\n", facts.check);
}

/// The graphs as a table.
std::string graph_table(const BundlePlan& plan) {
  std::string table = "| file | component | weights |\n| --- | --- | --- |\n";
  for (const GraphPlan& graph : plan.graphs)
    table += format("| `{}` | {} | `{}` |\n", graph.file, graph.component, graph.data_file);
  return table;
}

}  // namespace

Result<std::string> model_card(const SourceModel& model, const Engine& engine, const BundlePlan& plan,
                               const CardFacts& facts) {
  std::vector<std::string> notes = plan.notes;
  notes.insert(notes.end(), facts.notes.begin(), facts.notes.end());
  SourceCard original = source_card(model, notes);
  std::string card = card_head(model, engine, original);
  card += format("# {} for {}\n\n", model.name, engine.title);
  card += origin_text(model, facts) + licence_text(model, original);
  if (!plan.graphs.empty()) card += "\n" + graph_table(plan);
  if (!facts.picture.empty()) card += format("\n![Quality of the variants against their size]({})\n", facts.picture);
  if (!plan.usage.empty()) card += format("\n## Use\n\n{}", plan.usage);
  if (std::string modules = left_out_modules(model.folder); !modules.empty()) notes.push_back(std::move(modules));
  if (!notes.empty()) card += "\n## Notes\n\n";
  for (const std::string& note : notes) card += format("- {}\n", note);
  if (original.body.find_first_not_of(" \t\r\n") != std::string::npos) {
    card += "\n## The model's own card\n\nWhat follows was written for the model that this is an export of.\n\n---\n\n";
    card += original.body;
    if (!card.ends_with('\n')) card += '\n';
  }
  return card;
}

}  // namespace argosy::engines
