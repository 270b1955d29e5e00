#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace argosy {

// What a Python said of the packages that it has which extend Argosy (python -m argosy.extensions). Captures differ
// with them, so they are part of a key, as a text (CaptureRequest::extensions). Answers are kept in the cache.

/// Where they are kept, a file for each Python.
std::filesystem::path extension_answers(const std::filesystem::path& cache);
/// The text; nullopt if it is no answer.
std::optional<std::string> extensions_of_answer(std::string_view answer);
/// That of an answer which is kept there, if all that it rests on is as it was.
std::optional<std::string> remembered_extensions(const std::filesystem::path& path);
/// Those of all answers that still hold, each once; first "", none.
std::vector<std::string> all_remembered_extensions(const std::filesystem::path& cache);

}  // namespace argosy
