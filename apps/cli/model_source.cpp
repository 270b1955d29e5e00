#include "model_source.h"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "driver/model_folder.h"
#include "io/json.h"
#include "python.h"
#include "subprocess.h"

namespace argosy::cli {
namespace {

ErrorCode code_of(std::string_view name) {
  constexpr std::array kCodes = {ErrorCode::kInvalidInput, ErrorCode::kUnsupportedFeature, ErrorCode::kNotFound,
                                 ErrorCode::kIo};
  for (ErrorCode code : kCodes) {
    if (code_name(code) == name) return code;
  }
  return ErrorCode::kIo;
}

/// What argosy.hub says, a line at a time: progress, an error, or something to show if it fails without one.
class HubLines {
 public:
  HubLines(const std::string& name, const std::string& python, Terminal& terminal)
      : task_(format("download {}", name)),
        terminal_(terminal),
        hook_(terminal.progress_hook()),
        end_{python, "argosy.hub", 0, {}} {}

  void take(std::string_view line) {
    auto document = line.starts_with('{') ? JsonDocument::parse(line, "line")
                                          : Result<JsonDocument>(fail(ErrorCode::kInvalidInput, "no JSON"));
    if (!document) {
      terminal_.log(LogLevel::kDebug, line);
      end_.take(line);
      return;
    }
    auto text = [&](const char* key) { return std::string(document->root().find(key).as_string().value_or("")); };
    if (std::string code = text("error"); !code.empty()) {
      error_ = Error(code_of(code), text("message"), text("hint"));
      return;
    }
    if (std::string stage = text("stage"); !stage.empty()) {
      terminal_.log(LogLevel::kInfo, stage);
      terminal_.stage_detail(stage);
    }
    auto number = [&](const char* key) { return document->root().find(key).as_unsigned().value_or(0); };
    uint64_t total = number("bytes_total");
    if (total == 0 || !hook_) return;
    // A retry may begin a file again; a bar never goes back.
    done_ = std::max(done_, number("bytes_done"));
    hook_(Progress{task_, std::min(done_, total), total, done_ >= total});
  }

  Error failure(int exit_code, const Environment& environment) {
    if (error_) return *error_;
    end_.exit_code = exit_code;
    return python_failure(end_, "the download failed", "the download needs argosy and huggingface_hub", ErrorCode::kIo,
                          environment);
  }

 private:
  std::string task_;
  Terminal& terminal_;
  ProgressHook hook_;
  uint64_t done_ = 0;
  std::optional<Error> error_;
  PythonEnd end_;
};

ModelRequest model_request(const ModelOptions& options, ModelParts parts, const Environment& environment) {
  ModelRequest request;
  request.name = options.model;
  request.revision = options.revision;
  request.hub_cache = environment.hub_cache;
  request.weights = parts == ModelParts::kWeights;
  request.code = options.trust_remote_code;
  return request;
}

Status download(const ModelRequest& request, const std::string& missing, const Environment& environment,
                Terminal& terminal) {
  std::vector<std::string> pythons = candidate_pythons(environment);
  const std::string& name = request.name.native();
  if (pythons.empty()) {
    return fail(ErrorCode::kNotFound,
                format("the Hub's cache lacks {} ({}), and there is no Python to download it with", missing, name),
                "install Python with argosy and huggingface_hub, or name it by ARGOSY_PYTHON; or give a folder");
  }
  std::vector<std::string> command = {
      pythons[0], "-m", "argosy.hub", "--repo", name, "--cache", request.hub_cache.string()};
  if (!request.revision.empty()) command.push_back(format("--revision={}", request.revision));
  if (request.weights) command.emplace_back("--weights");
  if (request.code) command.emplace_back("--code");
  terminal.log(LogLevel::kDebug,
               format("the Hub's cache lacks {} ({}); starting {} -m argosy.hub", missing, name, pythons[0]));
  terminal.begin_stage(format("Downloading {} ({})", missing, name));
  HubLines lines(name, pythons[0], terminal);
  auto exit_code = run_lines(command, [&](std::string_view line) { lines.take(line); }, {}, [&] { terminal.tick(); });
  if (!exit_code) {
    return fail(ErrorCode::kIo, format("{} cannot be started", pythons[0]),
                "check that it is a Python interpreter; ARGOSY_PYTHON names another");
  }
  if (*exit_code != 0) return fail(lines.failure(*exit_code, environment));
  terminal.end_stage();
  return {};
}

}  // namespace

Result<std::filesystem::path> obtain_model(const ModelOptions& options, ModelParts parts,
                                           const Environment& environment, Terminal& terminal) {
  ModelRequest request = model_request(options, parts, environment);
  // For what is started later: with code of another repository, transformers itself would ask the Hub.
  if (options.offline) ::setenv("HF_HUB_OFFLINE", "1", 1);
  ARGOSY_TRY(FoundModel found, find_model(request));
  bool was_cached = found.missing.empty();
  if (!was_cached) {
    if (options.offline || environment.offline) {
      return fail(ErrorCode::kNotFound,
                  format("the Hub's cache in {} lacks {} ({})", argosy::quoted(environment.hub_cache.native(), 1000),
                         found.missing, options.model),
                  options.offline ? "leave --offline out to download it, or give a folder"
                                  : "unset HF_HUB_OFFLINE to download it, or give a folder");
    }
    ARGOSY_TRY_STATUS(download(request, found.missing, environment, terminal));
    ARGOSY_TRY(found, find_model(request));
    if (!found.missing.empty()) {
      return fail(ErrorCode::kNotFound, format("after the download {} still lacks {}", options.model, found.missing),
                  "if its branch was just changed, run this again");
    }
  }
  if (!found.commit.empty()) {
    terminal.print_error(format("argosy: {} at {}{}\n", options.model, found.commit,
                                was_cached ? ", from the Hub's cache" : ", downloaded"));
  }
  return found.folder;
}

Result<std::string> missing_parts(const ModelOptions& options, ModelParts parts, const Environment& environment) {
  ARGOSY_TRY(FoundModel found, find_model(model_request(options, parts, environment)));
  return found.missing;
}

}  // namespace argosy::cli
