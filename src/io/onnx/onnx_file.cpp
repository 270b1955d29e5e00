#include <sys/mman.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "io/file.h"
#include "io/names.h"
#include "io/onnx/onnx_model.h"

namespace argosy {
namespace {

/// A file in memory. If someone else truncates it meanwhile, touching it kills the process; callers hold it briefly.
class Mapping {
 public:
  static Result<Mapping> map(const ReadFile& file) {
    if (file.size() == 0) return Mapping(nullptr, 0);
    ARGOSY_TRY(ReadFile::Lease lease, file.lease());
    void* address = ::mmap(nullptr, file.size(), PROT_READ, MAP_PRIVATE, lease.descriptor(), 0);
    if (address == MAP_FAILED) return fail(system_error("map", file.path(), errno));
    return Mapping(address, file.size());
  }
  Mapping(Mapping&& other) noexcept : address_(std::exchange(other.address_, nullptr)), size_(other.size_) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping() {
    if (address_ != nullptr) ::munmap(address_, size_);
  }
  std::string_view bytes() const { return {static_cast<const char*>(address_), size_}; }

 private:
  Mapping(void* address, size_t size) : address_(address), size_(size) {}
  void* address_;
  size_t size_;
};

}  // namespace

Result<OnnxModel> read_onnx_model(const std::filesystem::path& path, OnnxExternalData check, OnnxNodes nodes) {
  std::string name = quoted(path.native(), 1000);
  ARGOSY_TRY(auto file, ReadFile::open(path));
  ARGOSY_TRY(Mapping mapping, Mapping::map(*file));
  ARGOSY_TRY(OnnxModel model, parse_onnx_model(mapping.bytes(), name, check, nodes));
  for (OnnxExternalFile& external : model.external_files) {
    if (!is_plain_relative_path(external.location)) continue;
    std::error_code failure;
    uint64_t size = std::filesystem::file_size(path.parent_path() / external.location, failure);
    if (failure) continue;
    external.available_bytes = size;
    if (size < external.needed_bytes && check == OnnxExternalData::kMustBeSound) {
      return fail(ErrorCode::kCorruptFile,
                  format("{} is truncated: {} needs {} bytes of it, of which {} are missing", quoted(external.location),
                         name, external.needed_bytes, external.needed_bytes - size),
                  "the download or copy did not complete; get this file again");
    }
  }
  return model;
}

}  // namespace argosy
