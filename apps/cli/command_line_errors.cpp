#include "command_line_errors.h"

#include <algorithm>

#include "base/text.h"

namespace argosy::cli {
namespace {

/// How many letters are to be changed, added, left out or exchanged with their neighbours.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> steps(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) steps[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) steps[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = steps[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      steps[i][j] = std::min({changed, steps[i - 1][j] + 1, steps[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        steps[i][j] = std::min(steps[i][j], steps[i - 2][j - 2] + 1);
    }
  }
  return steps[a.size()][b.size()];
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  return names;
}

/// Of a command and those around it: global ones are taken everywhere.
std::vector<std::string> options_of(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* each : app->get_options()) {
      for (const std::string& name : each->get_lnames()) names.push_back("--" + name);
      for (const std::string& name : each->get_snames()) names.push_back("-" + name);
    }
  }
  return names;
}

const CLI::Option* find_option(const CLI::App* app, const std::string& name) {
  for (; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* found = app->get_option_no_throw(name); found != nullptr) return found;
  }
  return nullptr;
}

/// "argosy export onnx"
std::string path_of(const CLI::App* app) {
  std::string path = app->get_name();
  while ((app = app->get_parent()) != nullptr) path = format("{} {}", app->get_name(), path);
  return path;
}

Error unknown(std::string_view what, const std::string& word, const std::string& likely, const CLI::App* app) {
  std::string help = format("{} --help lists all", path_of(app));
  return {ErrorCode::kInvalidInput, format("there is no {} {}", what, quoted(word)),
          likely.empty() ? help : format("did you mean {}? {}", likely, help)};
}

}  // namespace

std::string meant(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : names) {
    if (size_t steps = distance(word, name); steps < least) {
      least = steps;
      best = name;
    }
  }
  return best;
}

std::optional<Error> unknown_word(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") break;
    if (word.size() > 1 && word.front() == '-') {
      std::string name = word.substr(0, word.find('='));
      const CLI::Option* option = find_option(command, name);
      if (option == nullptr) return unknown("option", name, meant(name, options_of(command)), command);
      if (name == word && option->get_expected_max() > 0) ++i;  // its value
      continue;
    }
    std::vector<std::string> known = commands_of(*command);
    if (known.empty()) continue;  // a path or the like
    if (std::ranges::find(known, word) == known.end()) return unknown("command", word, meant(word, known), command);
    command = command->get_subcommand(word);
  }
  return std::nullopt;
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  if (auto unknown = unknown_word(app, arguments)) return *std::move(unknown);
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::string message = error.what();
  // CLI11 says how it checks, in words of its own.
  if (error.get_name() == "RequiredError" && !commands_of(*command).empty() && command->get_subcommands().empty())
    message = format("{} needs a command: {}", path_of(command), join(commands_of(*command), ", "));
  return {ErrorCode::kInvalidInput, std::move(message), format("see {} --help", path_of(command))};
}

}  // namespace argosy::cli
