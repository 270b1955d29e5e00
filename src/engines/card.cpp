#include "engines/card.h"

#include "base/text.h"
#include "engines/sentence_modules.h"
#include "io/file.h"

namespace argosy::engines {
namespace {

constexpr uint64_t kMaxCard = uint64_t{4} << 20;

/// The lines of a card's head that state a model's licence, unchanged. Only plain `key: value` lines are taken, so that
/// a hostile head gives nothing.
std::vector<std::string> licence_lines(std::string_view card) {
  std::vector<std::string> lines;
  if (!card.starts_with("---\n")) return lines;
  card.remove_prefix(4);
  while (!card.empty() && !card.starts_with("---")) {
    size_t end = card.find('\n');
    std::string_view line = card.substr(0, end);
    for (std::string_view key : {"license: ", "license_name: ", "license_link: "}) {
      if (line.starts_with(key) && is_utf8(line) && line.size() < 300) lines.emplace_back(line);
    }
    if (end == std::string_view::npos) break;
    card.remove_prefix(end + 1);
  }
  return lines;
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
  std::vector<std::string> licence;
  if (model.has_file(kCardFile)) {
    ARGOSY_TRY(std::string text, read_text_file(model.folder / kCardFile, kMaxCard));
    licence = licence_lines(text);
  }
  std::string card = "---\n";
  if (model.name.find('/') != std::string::npos) card += format("base_model: {}\n", model.name);
  for (const std::string& line : licence) card += line + "\n";
  card += "tags:\n";
  if (engine.backend != engine.name) card += format("- {}\n", engine.backend);
  card += format("- argosy\n- {}\n---\n\n", engine.name);
  card += format("# {} for {}\n\n", model.name, engine.title);
  card += format("`{}`{}, exported by argosy {}. Check: {}.\n", model.model_class,
                 model.commit.empty() ? "" : format(", commit `{}`", model.commit), facts.argosy_version, facts.check);
  card += licence.empty() ? "The model's own card states no licence; ask its publisher before you use or share this.\n"
                          : "The licence is the model's own; licence files of it are in this folder.\n";
  if (!plan.graphs.empty()) card += "\n" + graph_table(plan);
  if (!plan.usage.empty()) card += format("\n## Use\n\n{}", plan.usage);
  std::vector<std::string> notes = plan.notes;
  notes.insert(notes.end(), facts.notes.begin(), facts.notes.end());
  if (std::string modules = left_out_modules(model.folder); !modules.empty()) notes.push_back(std::move(modules));
  if (!notes.empty()) card += "\n## Notes\n\n";
  for (const std::string& note : notes) card += format("- {}\n", note);
  return card;
}

}  // namespace argosy::engines
