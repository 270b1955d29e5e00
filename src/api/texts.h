#pragma once

#include <filesystem>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/functions.h"

/// What functions are given and return as lists of texts, in which form it passes the border of a shared library. Both
/// sides are of one version, so there is nothing in them but the values.
namespace argosy::api {

inline auto members(CacheRequest& of) {
  return std::tie(of.model, of.cache, of.format, of.task, of.shape, of.dtype, of.prefill, of.trust_remote_code);
}
inline auto members(CachedFiles& of) { return std::tie(of.capture, of.weight_plan); }
inline auto members(LintFinding& of) { return std::tie(of.is_error, of.rule, of.file, of.what, of.hint); }
inline auto members(LintReport& of) { return std::tie(of.engine, of.graphs, of.files, of.findings); }
inline auto members(CheckRecord& of) { return std::tie(of.kind, of.why, of.compared, of.quality); }
inline auto members(BundleGraph& of) { return std::tie(of.file, of.component, of.method); }
inline auto members(BundleVariant& of) { return std::tie(of.name, of.check); }
inline auto members(BundleDescription& of) {
  return std::tie(of.format, of.engine, of.model_class, of.task, of.source, of.options, of.files, of.graphs, of.check,
                  of.variants);
}

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;

/// Adds the texts of a value.
template <class T>
void write_texts(T& value, std::vector<std::string>& texts) {
  if constexpr (std::is_same_v<T, std::string>) {
    texts.push_back(value);
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    texts.push_back(value.string());
  } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
    texts.push_back(std::to_string(static_cast<unsigned long long>(value)));
  } else if constexpr (is_list<T>) {
    texts.push_back(std::to_string(value.size()));
    for (auto& each : value) write_texts(each, texts);
  } else {
    std::apply([&](auto&... each) { (write_texts(each, texts), ...); }, members(value));
  }
}

/// Takes a value from the texts at `next`, as they were written.
template <class T>
void read_texts(T& value, std::vector<std::string>::const_iterator& next) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::filesystem::path>) {
    value = *next++;
  } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
    value = static_cast<T>(std::stoull(*next++));
  } else if constexpr (is_list<T>) {
    value.resize(std::stoull(*next++));
    for (auto& each : value) read_texts(each, next);
  } else {
    std::apply([&](auto&... each) { (read_texts(each, next), ...); }, members(value));
  }
}

template <class T>
std::vector<std::string> texts_of(T value) {
  std::vector<std::string> texts;
  write_texts(value, texts);
  return texts;
}

template <class T>
T from_texts(const std::vector<std::string>& texts) {
  T value;
  auto next = texts.begin();
  read_texts(value, next);
  return value;
}

}  // namespace argosy::api
