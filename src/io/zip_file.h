#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/output.h"
#include "io/tensor_writer.h"

namespace argosy {

/// An entry of a zip file: a text or a tensor. Both must outlive the writing.
struct ZipItem {
  std::string_view name;
  std::string_view text;
  const TensorSource* source = nullptr;  // null: the text
};

/// Writes a whole zip file into an empty file: the bytes that ZipWriter gives for the same entries in the same order,
/// but with all places known beforehand, so that tensors are written by several threads. `progress` counts the bytes of
/// tensors.
Status write_zip_file(std::span<const ZipItem> items, OutputFile& file, const TensorWriteOptions& options);

}  // namespace argosy
