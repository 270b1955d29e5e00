#include "driver/onnx/kept_graphs.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "driver/earlier_bundle.h"
#include "io/file.h"
#include "io/onnx/onnx_model.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kComparedElements = 4096;  // of each tensor; whole bytes of any dtype
constexpr size_t kCompareScratch = size_t{16} << 20;

tl::unexpected<Error> differs(const fs::path& file, std::string_view what) {
  return fail(ErrorCode::kInvalidInput,
              format("{} is not what this export writes: {} differ, so it was made of another model, or otherwise",
                     quoted(file.native(), 1000), what),
              "export all variants anew, to another folder or without --add");
}

Result<bool> has_bytes_at(const ReadFile& file, uint64_t offset, std::string_view bytes) {
  if (offset > file.size() || bytes.size() > file.size() - offset) return false;
  ARGOSY_TRY(std::string stored, file.read_text(offset, bytes.size()));
  return stored == bytes;
}

Status check_graph(const onnx::EncodedModel& model, const fs::path& path) {
  ARGOSY_TRY(auto file, ReadFile::open(path));
  if (file->size() != model.size()) return differs(path, "sizes");
  uint64_t offset = 0;
  size_t done = 0;
  auto compare_up_to = [&](size_t end) -> Status {
    ARGOSY_TRY(bool is_same, has_bytes_at(*file, offset, std::string_view(model.bytes).substr(done, end - done)));
    if (!is_same) return differs(path, "graphs");
    offset += end - done;
    done = end;
    return {};
  };
  for (const onnx::EncodedModel::Gap& gap : model.gaps) {
    ARGOSY_TRY_STATUS(compare_up_to(gap.before));
    offset += static_cast<uint64_t>(gap.tensor->bytes());
  }
  return compare_up_to(model.bytes.size());
}

Status check_data(const onnx::Layout::DataFile& data, const fs::path& path) {
  ARGOSY_TRY(auto file, ReadFile::open(path));
  if (file->size() != data.bytes) return differs(path, "sizes");
  for (const onnx::Layout::Tensor& tensor : data.tensors) {
    uint64_t offset = tensor.offset;
    bool is_same = true;
    auto sink = [&](std::span<const std::byte> bytes) -> Status {
      std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      ARGOSY_TRY(bool is_there, has_bytes_at(*file, offset, text));
      is_same = is_same && is_there;
      offset += bytes.size();
      return {};
    };
    const int64_t count = std::min(tensor.source->elements(), kComparedElements);
    ARGOSY_TRY_STATUS(tensor.source->stream_range(0, count, sink, kCompareScratch));
    if (!is_same) return differs(path, format("values of {}", quoted(tensor.name)));
  }
  return {};
}

}  // namespace

Result<ExportCheck> check_in_graph(const fs::path& file) {
  ARGOSY_TRY(OnnxModel model, read_onnx_model(file));
  for (const auto& [key, value] : model.metadata_props) {
    if (key != kOnnxManifestKey) continue;
    ARGOSY_TRY(JsonDocument manifest, JsonDocument::parse(value, file.native()));
    return read_check(manifest.root());
  }
  return differs(file, "authors");
}

Status check_kept_graphs(const onnx::Bundle& bundle, const fs::path& folder) {
  for (size_t i = 0; i < bundle.models().size(); ++i) {
    ARGOSY_TRY(onnx::EncodedModel model, bundle.encoded(i));
    ARGOSY_TRY_STATUS(check_graph(model, folder / bundle.models()[i].file));
  }
  for (const onnx::Layout::DataFile& file : bundle.layout().data_files)
    ARGOSY_TRY_STATUS(check_data(file, folder / file.name));
  return {};
}

Status keep_graphs(const onnx::Bundle& bundle, const fs::path& from, const fs::path& to) {
  for (const onnx::NamedModel& model : bundle.models())
    ARGOSY_TRY_STATUS(keep_file(from / model.file, to / model.file));
  for (const onnx::Layout::DataFile& file : bundle.layout().data_files)
    ARGOSY_TRY_STATUS(keep_file(from / file.name, to / file.name));
  for (const onnx::Layout::LinkedFile& file : bundle.layout().linked)
    ARGOSY_TRY_STATUS(keep_file(from / file.name, to / file.name));
  return {};
}

}  // namespace argosy
