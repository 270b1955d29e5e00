#include "command_line_scripts.h"

#include <algorithm>

#include "argosy/version.h"
#include "base/text.h"

namespace argosy::cli {
namespace {

struct OptionRow {
  std::vector<std::string> names;   // with their dashes
  std::vector<std::string> values;  // that it takes; empty: any, such as files
  std::string what;
  bool takes_value = false;
};

struct CommandRow {
  std::string path;  // "export onnx"; empty: the program itself
  std::string what;
  std::vector<std::pair<std::string, std::string>> commands;     // below it, or words that it takes; what they are
  std::vector<std::pair<std::string, std::string>> positionals;  // names and what they are
  std::vector<OptionRow> options;                                // its own
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

/// Those that one_of() has named.
std::vector<std::string> values_of(const CLI::Option& option) {
  auto& changeable = const_cast<CLI::Option&>(option);  // CLI11 has no other way to look at validators
  for (int i = 0;; ++i) {
    try {
      std::string_view name = changeable.get_validator(i)->get_name();
      if (name.starts_with(kValuesName)) return words_of(name.substr(kValuesName.size()));
    } catch (const CLI::OptionNotFound&) {
      return {};
    }
  }
}

void add_rows(const CLI::App& app, const std::string& path, std::vector<CommandRow>& rows) {
  CommandRow row;
  row.path = path;
  row.what = app.get_description();
  for (const CLI::Option* each : app.get_options()) {
    OptionRow option{{}, values_of(*each), each->get_description(), each->get_expected_max() > 0};
    for (const std::string& name : each->get_snames()) option.names.push_back("-" + name);
    for (const std::string& name : each->get_lnames()) option.names.push_back("--" + name);
    if (each->get_positional()) {
      row.positionals.emplace_back(each->get_name(true), each->get_description());
      for (const std::string& value : option.values) row.commands.emplace_back(value, each->get_description());
    }
    if (!option.names.empty()) row.options.push_back(std::move(option));
  }
  auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* each : commands) row.commands.emplace_back(each->get_name(), each->get_description());
  if (path.empty()) row.commands.emplace_back("help", "Say more about a command");
  rows.push_back(std::move(row));
  for (const CLI::App* each : commands) add_rows(*each, (path.empty() ? "" : path + " ") + each->get_name(), rows);
}

std::vector<CommandRow> rows_of(const CLI::App& app) {
  std::vector<CommandRow> rows;
  add_rows(app, "", rows);
  return rows;
}

std::vector<std::string> paths_of(const std::vector<CommandRow>& rows) {
  std::vector<std::string> paths;
  for (const CommandRow& row : rows) {
    if (!row.path.empty()) paths.push_back(format("'{}'", row.path));
  }
  return paths;
}

/// The options of a command and the global ones, which it takes too.
std::vector<const OptionRow*> all_options(const CommandRow& row, const CommandRow& program) {
  std::vector<const OptionRow*> options;
  for (const OptionRow& each : row.options) options.push_back(&each);
  for (const OptionRow& each : program.options) {
    const bool is_own =
        std::ranges::any_of(row.options, [&](const OptionRow& own) { return own.names.back() == each.names.back(); });
    if (&row != &program && !is_own && each.takes_value) options.push_back(&each);
  }
  return options;
}

// The word before the cursor tells whether a value is wanted; the words before it, which command it is. Bash makes
// words of their own of "=" signs.
constexpr std::string_view kBashStart = R"(_argosy() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" path="" next="" i words=""
  if [[ $current == "=" ]]; then
    current=""
  elif [[ $previous == "=" ]]; then
    previous="${COMP_WORDS[COMP_CWORD-2]}"
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="${path:+$path }${COMP_WORDS[i]}"
    case "$next" in
)";

std::string bash_function(const std::vector<CommandRow>& rows) {
  std::string text(kBashStart);
  text += format("      {}) path=\"$next\" ;;\n    esac\n  done\n  COMPREPLY=()\n", join(paths_of(rows), "|"));
  text += "  case \"$path $previous\" in\n";
  std::string free_values;  // any text: the shell's own completion, of files
  for (const CommandRow& row : rows) {
    for (const OptionRow* option : all_options(row, rows.front())) {
      std::vector<std::string> patterns;
      for (const std::string& name : option->names) patterns.push_back(format("'{} {}'", row.path, name));
      if (!option->takes_value) continue;
      if (option->values.empty()) {
        free_values += format("{}{}", free_values.empty() ? "" : "|", join(patterns, "|"));
      } else {
        text += format("    {}) COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n", join(patterns, "|"),
                       join(option->values, " "));
      }
    }
  }
  text += format("    {}) return ;;\n  esac\n  case \"$path\" in\n", free_values);
  for (const CommandRow& row : rows) {
    std::vector<std::string> names, commands;
    for (const OptionRow* option : all_options(row, rows.front()))
      names.insert(names.end(), option->names.begin(), option->names.end());
    for (const auto& [name, what] : row.commands) commands.push_back(name);
    text += format("    '{}') words='{}'; [[ $current == -* ]] && words='{}' ;;\n", row.path, join(commands, " "),
                   join(names, " "));
  }
  return text + "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\n";
}

std::string bash_script(const std::vector<CommandRow>& rows) {
  return "# Completion of argosy for bash: source <(argosy completion bash)\n" + bash_function(rows) +
         "complete -o default -F _argosy argosy\n";
}

/// Zsh runs functions for bash.
std::string zsh_script(const std::vector<CommandRow>& rows) {
  return "#compdef argosy\n# Completion of argosy for zsh, behind compinit: source <(argosy completion zsh)\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_function(rows) + "complete -o default -F _argosy argosy\n";
}

/// In single quotes.
std::string fish_word(std::string_view text) {
  std::string result = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string fish_script(const std::vector<CommandRow>& rows) {
  std::string text =
      "# Completion of argosy for fish: argosy completion fish | source\n"
      "function __argosy_at\n"
      "  set -l path\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    set -l next (string join ' ' -- $path $word)\n";
  text += format("    contains -- \"$next\" {}; and set path $path $word\n", join(paths_of(rows), " "));
  text +=
      "  end\n"
      "  set -l here (string join ' ' -- $path)\n"
      "  test \"$here\" = \"$argv[1]\"\n"
      "end\n";
  for (const CommandRow& row : rows) {
    const std::string start = format("complete -c argosy -n {}", fish_word(format("__argosy_at \"{}\"", row.path)));
    for (const auto& [name, what] : row.commands) text += format("{} -f -a {} -d {}\n", start, name, fish_word(what));
    for (const OptionRow* option : all_options(row, rows.front())) {
      text += start;
      for (const std::string& name : option->names)
        text += name.starts_with("--") ? format(" -l {}", name.substr(2)) : format(" -s {}", name.substr(1));
      if (option->takes_value)
        text += option->values.empty() ? " -r" : format(" -x -a {}", fish_word(join(option->values, " ")));
      text += format(" -d {}\n", fish_word(option->what));
    }
  }
  return text;
}

/// Text for roff: no line is a request, and dashes can be copied.
std::string roff(std::string_view text) {
  constexpr std::string_view kDots = "…";
  std::string plain(text), result;
  for (size_t at = plain.find(kDots); at != std::string::npos; at = plain.find(kDots))
    plain.replace(at, kDots.size(), "...");
  for (char c : plain) {
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c == '\n' ? ' ' : c;
  }
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

void add_man_options(const CommandRow& row, std::string& text) {
  for (const auto& [name, what] : row.positionals) text += format(".TP\n.I {}\n{}\n", roff(name), roff(what));
  for (const OptionRow& option : row.options) {
    if (!row.path.empty() && option.names.back() == "--help") continue;
    text += format(".TP\n.B {}\n{}\n", roff(join(option.names, ", ")), roff(option.what));
  }
}

}  // namespace

std::string completion_script(const CLI::App& app, const std::string& shell) {
  const std::vector<CommandRow> rows = rows_of(app);
  return shell == "bash" ? bash_script(rows) : shell == "zsh" ? zsh_script(rows) : fish_script(rows);
}

std::string man_page(const CLI::App& app) {
  const std::vector<CommandRow> rows = rows_of(app);
  std::string text =
      format(".TH ARGOSY 1 \"\" \"argosy {}\"\n.SH NAME\nargosy \\- {}\n", version(), roff(rows[0].what));
  text += ".SH SYNOPSIS\n.B argosy\n.I COMMAND\n.RI [ options ]\n.SH OPTIONS\n";
  add_man_options(rows[0], text);
  text += ".SH COMMANDS\n";
  for (size_t i = 1; i < rows.size(); ++i) {
    text += format(".SS argosy {}\n{}\n", rows[i].path, roff(rows[i].what));
    add_man_options(rows[i], text);
  }
  text +=
      ".SH EXIT STATUS\n0 if all is done, 1 if something failed, 2 for a wrong command line, 3 if an export was "
      "checked and is\n"
      "not as the model.\n";
  return text;
}

}  // namespace argosy::cli
