#include "frontends/pt2/weights.h"

#include <algorithm>
#include <numeric>

#include "base/checked_math.h"
#include "base/text.h"
#include "frontends/pt2/types.h"
#include "io/pt2_format.h"

namespace argosy {
namespace {

constexpr uint64_t kMaxConfig = uint64_t{256} << 20;

Result<std::vector<int64_t>> read_sizes(const JsonField& list) {
  ARGOSY_TRY_STATUS(list.require_array());
  std::vector<int64_t> sizes;
  int64_t index = 0;
  for (JsonView item : list.view().items()) {
    JsonField field = list.item(item, index++);
    if (sizes.size() == kMaxRank) return list.error(format("more than {} dims", kMaxRank));
    ARGOSY_TRY(int64_t size, field.member("as_int").integer());
    if (size < 0) return field.error(format("negative number {}", size));
    sizes.push_back(size);
  }
  return sizes;
}

/// The order of dims in which a tensor of these strides is row-major and packed; nullopt if there is none. Dims of size
/// 1 may have any stride.
std::optional<std::vector<int>> packed_order(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  std::vector<int> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) {
    // Size-1 dims keep their place relative to their right neighbour, so that a row-major tensor stays in order.
    if (sizes[static_cast<size_t>(a)] == 1 || sizes[static_cast<size_t>(b)] == 1) return false;
    return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
  });
  int64_t expected = 1;
  for (size_t i = order.size(); i-- > 0;) {
    size_t dim = static_cast<size_t>(order[i]);
    if (sizes[dim] == 1) continue;
    if (strides[dim] != expected) return std::nullopt;
    expected *= sizes[dim];  // the product of all sizes was checked
  }
  return order;
}

}  // namespace

std::string Pt2Weights::Payload::key() const {
  std::string text = format("{} {} {}", entry, offset, to_text(dtype));
  for (int64_t size : shape) text += format(" {}", size);
  for (int dim : permutation) text += format(" p{}", dim);
  // Zero-byte entries of fake tensors are shared by all of them: they tell nothing apart.
  return is_shape_only ? std::string() : text;
}

Status Pt2Weights::read_configs(std::string_view model) {
  payloads_.clear();
  ARGOSY_TRY_STATUS(read_config(kPt2Weights, format("{}_weights_config.json", model)));
  return read_config(kPt2Constants, format("{}_constants_config.json", model));
}

Status Pt2Weights::read_config(std::string_view folder, std::string_view file) {
  std::string entry_name = format("{}{}{}", root_, folder, file);
  const ZipEntry* entry = zip_.find(entry_name);
  if (entry == nullptr) {
    return fail(ErrorCode::kCorruptFile, format("the archive has no entry {}", quoted(entry_name)),
                "write it again with torch.export.save of torch 2.9 or newer");
  }
  ARGOSY_TRY(std::string text, zip_.read(*entry, kMaxConfig));
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse_owned(std::move(text), entry_name));
  JsonField root(document.root(), file);
  JsonField config = root.member("config");
  ARGOSY_TRY_STATUS(config.require_object());
  for (auto [name, meta] : config.view().members()) {
    JsonField field = config.child(name, meta);
    ARGOSY_TRY(Payload payload, read_payload(folder, name, field));
    if (!payloads_.emplace(name, std::move(payload)).second) return field.error("given twice");
  }
  return {};
}

Result<Pt2Weights::Payload> Pt2Weights::read_payload(std::string_view folder, std::string_view name,
                                                     const JsonField& meta) const {
  ARGOSY_TRY(std::string_view path, meta.member("path_name").string());
  ARGOSY_TRY(bool is_pickled, meta.member("use_pickle").boolean());
  if (is_pickled) {
    return meta.error(ErrorCode::kUnsupportedFeature,
                      format("{} is stored as a pickle, which is never opened", quoted(name)),
                      "tensor subclasses and custom objects are saved so: unwrap them before torch.export.save");
  }
  if (path.find('/') != std::string_view::npos) return meta.error(format("{} is not a plain file name", quoted(path)));
  Payload payload;
  payload.entry = format("{}{}", folder, path);
  const ZipEntry* entry = zip_.find(root_ + payload.entry);
  if (entry == nullptr) return meta.error(format("the archive has no entry {}", quoted(payload.entry)));

  JsonField tensor = meta.member("tensor_meta");
  ARGOSY_TRY_STATUS(tensor.require_object());
  ARGOSY_TRY(int64_t dtype_number, tensor.member("dtype").integer());
  std::optional<DType> dtype = dtype_from_pt2(dtype_number);
  if (!dtype) return tensor.error(ErrorCode::kUnsupportedFeature, format("unknown dtype number {}", dtype_number));
  payload.dtype = *dtype;
  JsonField sizes = tensor.member("sizes");
  ARGOSY_TRY(payload.shape, read_sizes(sizes));
  JsonField stride_list = tensor.member("strides");
  ARGOSY_TRY(std::vector<int64_t> strides, read_sizes(stride_list));
  if (strides.size() != payload.shape.size()) return stride_list.error("not one stride for each size");
  JsonField offset_field = tensor.member("storage_offset");
  ARGOSY_TRY(int64_t storage_offset, offset_field.member("as_int").integer());
  std::optional<int64_t> count = element_count(payload.shape);
  std::optional<int64_t> bytes = count ? packed_bytes(payload.dtype, *count) : std::nullopt;
  if (!bytes) return sizes.error("number of bytes overflows");
  if (*count == 0) return payload;
  if (entry->size == 0) {  // how torch writes fake tensors
    payload.is_shape_only = true;
    return payload;
  }
  std::optional<std::vector<int>> order = packed_order(payload.shape, strides);
  if (!order) {
    return stride_list.error(ErrorCode::kUnsupportedFeature,
                             format("{} is a strided view of its storage", quoted(name)),
                             "make the tensor contiguous before torch.export.save");
  }
  if (!std::ranges::is_sorted(*order)) payload.permutation = *order;
  std::optional<int64_t> skipped = storage_offset < 0 ? std::nullopt : packed_bytes(payload.dtype, storage_offset);
  std::optional<int64_t> end = skipped ? checked_add(*skipped, *bytes) : std::nullopt;
  if (!end) return offset_field.error(format("offset {} is negative or overflows", storage_offset));
  if (static_cast<uint64_t>(*end) > entry->size) {
    return meta.error(
        format("{} needs bytes beyond the {} of entry {}", quoted(name), entry->size, quoted(payload.entry)));
  }
  payload.offset = entry->offset + static_cast<uint64_t>(*skipped);
  return payload;
}

Result<TensorSourcePtr> Pt2Weights::source(const Payload& payload, std::string_view name) const {
  if (payload.is_shape_only) return shape_only(payload.dtype, payload.shape, std::string(name));
  if (element_count(payload.shape) == 0) return literal({}, payload.dtype, payload.shape);
  if (payload.permutation.empty()) return file_slice(zip_.file(), payload.offset, payload.dtype, payload.shape);
  // The file holds the dims in the order of `permutation`; dim i of the weight is the one that stands at i's place in
  // it.
  std::vector<int64_t> stored;
  std::vector<int> back(payload.permutation.size());
  for (size_t i = 0; i < payload.permutation.size(); ++i) {
    size_t dim = static_cast<size_t>(payload.permutation[i]);
    stored.push_back(payload.shape[dim]);
    back[dim] = static_cast<int>(i);
  }
  ARGOSY_TRY(TensorSourcePtr slice, file_slice(zip_.file(), payload.offset, payload.dtype, std::move(stored)));
  return transposed(std::move(slice), std::move(back));
}

Result<WeightId> Pt2Weights::bind(Program& program, std::string_view model, WeightKind kind, std::string_view name,
                                  DType dtype, const std::vector<int64_t>& shape) {
  auto found = payloads_.find(std::string(name));
  if (found == payloads_.end())
    return fail(ErrorCode::kCorruptFile, format("the archive has no tensor for weight {}", quoted(name)));
  const Payload& payload = found->second;
  if (payload.dtype != dtype || payload.shape != shape) {
    return fail(ErrorCode::kCorruptFile,
                format("the graph and the archive differ on dtype or shape of weight {}", quoted(name)));
  }
  std::string content = payload.key();
  std::string full_name(name);
  auto known = by_name_.find(full_name);
  if (known != by_name_.end()) {
    if (content_[known->second.index] == content && program[known->second].kind == kind) return known->second;
    full_name = format("{}/{}", model, name);
    if (by_name_.contains(full_name))
      return fail(ErrorCode::kCorruptFile, format("weight {} occurs twice", quoted(name)));
  }
  WeightId id{static_cast<uint32_t>(program.weights.size())};
  Weight weight{.name = full_name, .kind = kind, .dtype = dtype, .shape = shape, .source = nullptr, .tied_to = {}};
  ARGOSY_TRY(weight.source, source(payload, full_name));
  bool has_bytes = !content.empty() && element_count(shape) != 0;
  if (has_bytes) {
    auto [first, is_new] = by_content_.try_emplace(content, id);
    if (!is_new) weight.tied_to = first->second;
  }
  program.weights.push_back(std::move(weight));
  by_name_.emplace(std::move(full_name), id);
  content_.emplace(id.index, std::move(content));
  return id;
}

}  // namespace argosy
