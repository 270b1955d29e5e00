#include "io/torch_file.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>

#include "base/checked_math.h"
#include "base/text.h"
#include "io/torch_pickle.h"
#include "io/zip.h"
#include "tensor/source.h"

namespace argosy {
namespace {

constexpr uint64_t kMaxTorchPickle = uint64_t{64} << 20;
constexpr std::string_view kPickleName = "/data.pkl";

tl::unexpected<Error> corrupt_torch_file(std::string_view file_name, std::string_view why) {
  return fail(ErrorCode::kCorruptFile, format("{} is not a usable file of torch.save: {}", file_name, why),
              "the file is damaged; download or write it again");
}

/// Before version 1.6, torch.save wrote several pickles one after another, or a tar file.
Status check_is_zip(const ReadFile& file, std::string_view file_name) {
  std::string start(std::min<uint64_t>(file.size(), 2), '\0');
  ARGOSY_TRY_STATUS(file.read(0, std::as_writable_bytes(std::span(start))));
  if (start == "PK") return {};
  if (start.empty()) return corrupt_torch_file(file_name, "it is empty");
  if (start[0] == '\x80') {
    return fail(ErrorCode::kUnsupportedFeature,
                format("{} has the format that PyTorch wrote before version 1.6, which is not read", file_name),
                "load it with torch.load(…, weights_only=True) and write it again with torch.save");
  }
  return corrupt_torch_file(file_name, "it does not begin like one");
}

/// Where the dims of a tensor lie in memory, outermost first; empty if its elements are not packed without gaps.
std::vector<int> memory_order(const TorchTensor& tensor) {
  std::vector<int> dims(tensor.shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  auto stride = [&](int dim) { return tensor.strides[static_cast<size_t>(dim)]; };
  auto size = [&](int dim) { return tensor.shape[static_cast<size_t>(dim)]; };
  // Strides of dims of one element mean nothing; these go where they change no order.
  std::vector<int> inner;
  std::ranges::copy_if(dims, std::back_inserter(inner), [&](int dim) { return size(dim) != 1; });
  std::ranges::stable_sort(inner, std::greater<>(), stride);
  int64_t expected = 1;
  for (auto dim = inner.rbegin(); dim != inner.rend(); ++dim) {
    if (stride(*dim) != expected) return {};
    expected *= size(*dim);  // at most the number of elements, which was found to fit
  }
  auto next = inner.begin();
  for (int& dim : dims) {
    if (size(dim) != 1) dim = *next++;
  }
  return dims;
}

class TorchFileReader {
 public:
  TorchFileReader(const ZipReader& zip, std::string_view folder, std::string_view file_name)
      : zip_(zip), folder_(folder), file_name_(file_name) {}

  Result<TorchFileEntry> place(const TorchTensor& tensor) const {
    TorchFileEntry entry{tensor.name, tensor.dtype, tensor.shape, 0, 0, {}};
    const ZipEntry* storage = zip_.find(format("{}/data/{}", folder_, tensor.storage));
    if (storage == nullptr)
      return wrong(tensor, format("lies in storage {}, which the file lacks", quoted(tensor.storage)));
    if (storage->size != static_cast<uint64_t>(tensor.storage_bytes)) {
      return wrong(tensor, format("lies in storage {} of {} bytes, of which the file has {}", quoted(tensor.storage),
                                  tensor.storage_bytes, storage->size));
    }
    auto bytes = checked_tensor_bytes(tensor.dtype, tensor.shape);
    if (!bytes) return wrong(tensor, "has a shape that is negative or overflows");
    if (tensor.offset < 0 || std::ranges::any_of(tensor.strides, [](int64_t stride) { return stride < 0; })) {
      return wrong(tensor, "has a negative offset or stride");
    }
    int64_t element = bits_of(tensor.dtype) / 8, count = tensor.storage_bytes / element;
    if (*bytes == 0) {
      entry.offset = storage->offset;
      return entry;
    }
    if (tensor.offset > count || *bytes / element > count - tensor.offset) {
      return outside(tensor, count);
    }
    std::vector<int> in_memory = memory_order(tensor);
    if (in_memory.empty() && !tensor.shape.empty()) {
      // What reaches outside is wrong in any case, so that it is said first.
      ARGOSY_TRY_STATUS(check_reach(tensor, count));
      return fail(ErrorCode::kUnsupportedFeature,
                  format("{}: tensor {} has shape {} and strides {}, which repeat or leave out elements", file_name_,
                         quoted(tensor.name), shape_list(tensor.shape), shape_list(tensor.strides)),
                  "make it contiguous and save the file again");
    }
    entry.offset = storage->offset + static_cast<uint64_t>(tensor.offset * element);
    entry.bytes = static_cast<uint64_t>(*bytes);
    if (!std::ranges::is_sorted(in_memory)) {
      entry.order.resize(in_memory.size());
      for (size_t i = 0; i < in_memory.size(); ++i)
        entry.order[static_cast<size_t>(in_memory[i])] = static_cast<int>(i);
    }
    return entry;
  }

 private:
  tl::unexpected<Error> wrong(const TorchTensor& tensor, std::string_view why) const {
    return corrupt_torch_file(file_name_, format("tensor {} {}", quoted(tensor.name), why));
  }
  tl::unexpected<Error> outside(const TorchTensor& tensor, int64_t count) const {
    return wrong(tensor, format("of shape {} at element {} reaches outside its storage of {} elements",
                                shape_list(tensor.shape), tensor.offset, count));
  }

  Status check_reach(const TorchTensor& tensor, int64_t count) const {
    std::optional<int64_t> last = tensor.offset;
    for (size_t i = 0; last && i < tensor.shape.size(); ++i) {
      auto reach = checked_mul(tensor.shape[i] - 1, tensor.strides[i]);
      last = reach ? checked_add(*last, *reach) : std::nullopt;
    }
    if (!last || *last >= count) return outside(tensor, count);
    return {};
  }

  static std::string shape_list(std::span<const int64_t> numbers) {
    std::vector<std::string> parts;
    for (int64_t number : numbers) parts.push_back(format("{}", number));
    return format("[{}]", join(parts, ", "));
  }

  const ZipReader& zip_;
  std::string_view folder_, file_name_;
};

}  // namespace

Result<std::vector<TorchFileEntry>> read_torch_file(const std::shared_ptr<const ReadFile>& file,
                                                    std::string_view file_name) {
  ARGOSY_TRY_STATUS(check_is_zip(*file, file_name));
  ARGOSY_TRY(ZipReader zip, ZipReader::open(file));
  // All entries lie in one folder, named as the file once was.
  auto is_pickle = [](const ZipEntry& entry) {
    return entry.name.ends_with(kPickleName) && entry.name.find('/') == entry.name.size() - kPickleName.size();
  };
  auto pickle = std::ranges::find_if(zip.entries(), is_pickle);
  if (pickle == zip.entries().end()) return corrupt_torch_file(file_name, "it has no data.pkl");
  std::string folder = pickle->name.substr(0, pickle->name.size() - kPickleName.size());
  if (const ZipEntry* order = zip.find(folder + "/byteorder"); order != nullptr) {
    ARGOSY_TRY(std::string text, zip.read(*order, 64));
    if (text != "little") {
      return fail(ErrorCode::kUnsupportedFeature, format("{} has the byte order {}", file_name, quoted(text)),
                  "write it again on a machine whose byte order is little");
    }
  }
  ARGOSY_TRY(std::string bytes, zip.read(*pickle, kMaxTorchPickle));
  ARGOSY_TRY(std::vector<TorchTensor> tensors, read_torch_pickle(bytes, file_name));
  TorchFileReader reader(zip, folder, file_name);
  std::vector<TorchFileEntry> entries;
  entries.reserve(tensors.size());
  for (const TorchTensor& tensor : tensors) {
    ARGOSY_TRY(TorchFileEntry entry, reader.place(tensor));
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &TorchFileEntry::name);
  auto twice = std::ranges::adjacent_find(entries, {}, &TorchFileEntry::name);
  if (twice != entries.end())
    return corrupt_torch_file(file_name, format("it has tensor {} twice", quoted(twice->name)));
  return entries;
}

}  // namespace argosy
