#pragma once

// CLI11 is slow to compile: this file is for command_line.cpp and its parts alone.
#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"

namespace argosy::cli {

/// What every command has that takes a model.
void add_model(CLI::App& command, ModelOptions& options, const std::string& what, const std::string& name = "--model");

/// As they may be written, and what they are.
std::map<std::string, std::string> names_of_dtypes();
void add_dtype(CLI::App* command, std::string& dtype);

/// Of those that run files of that backend; "": of all.
std::vector<std::string> names_of_engines(std::string_view backend = "");

/// How programs of ExecuTorch are lowered.
void add_recipe(CLI::App& command, ExecutorchOptions& options);

void add_export(CLI::App& app, ExportOptions& options);

}  // namespace argosy::cli
