#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace argosy {

/// A node of a user's own domain, which an op that is no PyTorch's becomes in ONNX files.
struct OwnOp {
  std::string domain, name;  // "com.example", "Gate"
  int64_t version = 1;       // of the domain
};

/// Programs keep one by this and the op's name: "onnx_op.mylib.gate.default" is "com.example.Gate 1".
inline constexpr std::string_view kOwnOpAttribute = "onnx_op.";
std::string to_text(const OwnOp& op);
Result<OwnOp> parse_own_op(std::string_view text);

/// An error unless a file can have it: a domain that is not ONNX's own, a name, a version of 1 or more.
Status check(const OwnOp& op);

}  // namespace argosy
