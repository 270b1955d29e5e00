#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"

namespace argosy {

struct ServeOptions {
  std::string host = "127.0.0.1";  // an address of this machine
  uint16_t port = 8470;            // 0: any that is free
};

/// Serves the files of a registry's folder by plain HTTP, reading only, until the process ends: for a local network,
/// and for tests. Names that no registry has are not looked for. `on_ready` is told the address.
Status serve_registry(const std::filesystem::path& folder, const ServeOptions& options,
                      const std::function<void(const std::string& url)>& on_ready);

}  // namespace argosy
