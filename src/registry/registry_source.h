#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace argosy {

/// Where a registry's files lie, for reading. What it gives is not trusted: sizes are bounded before there is memory
/// for them, and whoever asks compares hashes.
class RegistrySource {
 public:
  /// Takes the next bytes of a file.
  using Sink = std::function<Status(std::span<const std::byte> bytes)>;

  virtual ~RegistrySource() = default;
  RegistrySource() = default;
  RegistrySource(const RegistrySource&) = delete;
  RegistrySource& operator=(const RegistrySource&) = delete;

  /// "http://host/captures", or a folder's path.
  virtual const std::string& location() const = 0;
  /// A small file, by a name of is_registry_name(); nullopt if there is none, an error if it has more than `max_bytes`.
  virtual Result<std::optional<std::string>> read(const std::string& name, uint64_t max_bytes) const = 0;
  /// A file that has exactly so many bytes, in parts.
  virtual Status fetch(const std::string& name, uint64_t bytes, const Sink& sink) const = 0;
};

/// A folder: files and folders in it must be no links.
std::unique_ptr<RegistrySource> folder_source(const std::filesystem::path& folder);

/// How long a server may take.
struct HttpPatience {
  int idle_seconds = 5;                           // without a byte
  int least_seconds = 10;                         // of a whole answer, however small
  uint64_t bytes_per_second = uint64_t{1} << 16;  // and as long as that takes besides
};

/// A web server, by plain HTTP. Redirects, compressed and chunked answers are refused, and environment variables that
/// name proxies are not looked at. An error if that is no address of one.
Result<std::unique_ptr<RegistrySource>> http_source(const std::string& url, const HttpPatience& patience = {});

/// Either, by how the location begins.
Result<std::unique_ptr<RegistrySource>> open_registry_source(const std::string& location);

}  // namespace argosy
