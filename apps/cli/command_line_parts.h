#pragma once

// CLI11 is slow to compile: this file is for command_line.cpp and its parts alone.
#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"

namespace argosy::cli {

/// A validator whose name begins so has behind it the values that an option takes; shells complete them.
inline constexpr std::string_view kValuesName = "values: ";
std::string name_of_values(const std::vector<std::string>& names);

/// "4bit is not one of 4w, 8w"
std::string not_one_of(const std::string& text, const std::vector<std::string>& names);

/// For an option whose values have names.
template <class Value>
CLI::Validator one_of(const std::map<std::string, Value>& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return {[values, names](std::string& text) -> std::string {
            auto found = values.find(text);
            if (found == values.end()) return not_one_of(text, names);
            text = std::to_string(static_cast<long>(found->second));
            return "";
          },
          "", name_of_values(names)};
}

/// For an option that is one of these names.
CLI::Validator one_of(const std::vector<std::string>& names);
/// For an option that may be one of them, or another text.
CLI::Validator maybe_one_of(const std::vector<std::string>& names);

/// What every command has that takes a model.
void add_model(CLI::App& command, ModelOptions& options, const std::string& what, const std::string& name = "--model");

/// --adapter-apart NAME=DIR, any number of times.
void add_adapters_apart(CLI::App& command, std::map<std::string, std::string>& adapters, const std::string& what);

/// Where others share captures.
void add_registry(CLI::App& command, RegistryOptions& options);
void add_dtype(CLI::App* command, std::string& dtype);

/// What forward is called with, where the user gives that.
void add_inputs(CLI::App& command, std::vector<std::string>& files);
void add_trace(CLI::App& command, std::string& trace);

/// Of those that run files of that backend; "": of all.
std::vector<std::string> names_of_engines(std::string_view backend = "");

/// How programs of ExecuTorch are lowered.
void add_recipe(CLI::App& command, ExecutorchOptions& options);

void add_export(CLI::App& app, ExportOptions& options);

}  // namespace argosy::cli
