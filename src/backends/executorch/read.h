#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/executorch/document.h"
#include "base/result.h"

namespace argosy::executorch {

/// What a delegate of a file computes, as far as its payload can be read.
struct DelegateContents {
  uint64_t payload_bytes = 0;
  uint64_t nodes = 0;                     // 0: the backend's payloads cannot be read
  std::map<std::string, uint64_t> kinds;  // nodes by what they compute
};

/// Data that is found by its name.
struct StoredData {
  std::string key;
  uint64_t bytes = 0;
};

/// A .pte file, read back. Methods are as in a document, but without payloads and names of inputs and outputs, and with
/// aliases as tensors of their own; every index in them is in range, and lists of tensors hold tensors. Constants have
/// a key only where the file names their data.
struct ProgramFile {
  uint64_t bytes = 0, flatbuffer_bytes = 0, data_bytes = 0;
  std::vector<Method> methods;
  std::vector<std::vector<DelegateContents>> delegates;  // [method][delegate]
  std::vector<StoredData> data;                          // as the file lists it
  uint64_t constant_bytes = 0;                           // of the segment that constants are in
};

/// Reads part of a file: as many bytes as the span has.
using ReadPart = std::function<Status(uint64_t offset, std::span<std::byte> out)>;

/// The file may come from anywhere: its flatbuffer is verified, and every offset and index compared with what it is of.
/// Reads the flatbuffer and the payloads of delegates, no weights. Memory: a few times the flatbuffer, which is refused
/// above 256 MB.
Result<ProgramFile> read_program(const std::filesystem::path& path);
/// The same of something of `size` bytes; `name` is for messages.
Result<ProgramFile> read_program(const ReadPart& read, uint64_t size, const std::string& name);

/// Of the payload of an XNNPACK delegate; one that cannot be read has no nodes.
DelegateContents xnnpack_contents(std::span<const std::byte> payload);

}  // namespace argosy::executorch
