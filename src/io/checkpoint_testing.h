#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "io/checkpoint.h"

namespace argosy {

/// For tests only: the bytes of a checkpoint's tensor.
inline std::string bytes_of_tensor(const Checkpoint& checkpoint, std::string_view name) {
  std::string bytes;
  ByteSink sink = [&](std::span<const std::byte> more) -> Status {
    bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
    return {};
  };
  auto source = checkpoint.tensor(name);
  EXPECT_TRUE(source && (*source)->stream_to(sink, 1 << 20).has_value());
  return bytes;
}

}  // namespace argosy
