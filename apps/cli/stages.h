#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "cache/capture_key.h"

namespace argosy::cli {

/// "LlamaForCausalLM", as the configuration names the model; with a task of the user's "llama for TASK", as the class
/// is then another; "the model" if it says nothing.
std::string model_in_words(const CaptureRequest& request);

/// How long work took the last time on this machine, kept in a small file of the cache's folder. Whatever is wrong with
/// that file, nothing is known and nothing fails.
class StageTimes {
 public:
  explicit StageTimes(const std::filesystem::path& cache) : file_(cache / "times.txt") {}

  /// "about 30 s" if this kind of work was done for this model, "the last one took 30 s" if for another; else empty.
  std::string expected(std::string_view kind, std::string_view model) const;
  void remember(std::string_view kind, std::string_view model, double seconds) const;

 private:
  std::filesystem::path file_;
};

/// " (first time, about 30 s)"; empty words are left out.
std::string in_brackets(std::string_view first, std::string_view second);

}  // namespace argosy::cli
