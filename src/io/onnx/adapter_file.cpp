#include "io/onnx/adapter_file.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"
#include "base/text.h"

// onnxruntime's adapter_schema.fbs: a table Adapter of three version numbers and a list of tables Parameter, which have
// a name, dims, a number for the dtype and bytes. Both have four fields of four bytes, so that one vtable is theirs.
namespace argosy {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kIdentifier = "TORT";
constexpr uint32_t kFormatVersion = 1, kAdapterVersion = 1, kModelVersion = 1;
// The size of the vtable and of a table with its offset to the vtable, then where the four fields are in the table.
constexpr uint16_t kVtable[] = {12, 20, 4, 8, 12, 16};
constexpr uint64_t kVtableAt = 8, kTableBytes = 20;
constexpr uint64_t kMaxBytes = std::numeric_limits<int32_t>::max();

uint32_t adapter_dtype(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 1;
    case DType::kF16: return 10;
    case DType::kBF16: return 16;
    default: return 0;
  }
}

template <typename Number>
void append_number(std::string& to, Number number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put(std::string& to, uint64_t at, uint32_t number) {
  to.replace(at, sizeof number, reinterpret_cast<const char*>(&number), sizeof number);
}

/// Offsets count from where they are.
void point(std::string& to, uint64_t from, uint64_t target) { put(to, from, static_cast<uint32_t>(target - from)); }

/// Until what comes `ahead` bytes later begins at a multiple of eight.
void pad(std::string& to, uint64_t written, uint64_t ahead) {
  to.append((8 - (written + to.size() + ahead) % 8) % 8, '\0');
}

/// An empty table: its fields are to be put in.
uint64_t append_table(std::string& to) {
  uint64_t at = to.size();
  append_number(to, static_cast<uint32_t>(at - kVtableAt));
  to.append(kTableBytes - sizeof(uint32_t), '\0');
  return at;
}

}  // namespace

Result<AdapterLayout> lay_out_adapter(std::vector<NamedSource> tensors) {
  std::ranges::sort(tensors, {}, &NamedSource::name);
  if (tensors.empty()) return fail(ErrorCode::kInvalidInput, "an adapter without tensors");
  uint64_t bytes = 0;
  for (const NamedSource& tensor : tensors) {
    if (adapter_dtype(tensor.source->dtype()) == 0 || tensor.source->shape().empty()) {
      return fail(ErrorCode::kUnsupportedFeature,
                  format("{} is {}, and adapters hold f32, f16 and bf16", quoted(tensor.name),
                         tensor_text(tensor.source->dtype(), tensor.source->shape())));
    }
    bytes += static_cast<uint64_t>(tensor.source->bytes()) + tensor.name.size() + 128;  // and what is around it
    if (bytes > kMaxBytes)
      return fail(ErrorCode::kUnsupportedFeature, "an adapter of 2 GiB or more, which ONNX Runtime does not read",
                  "give one of a lower rank");
  }
  std::string head(kVtableAt, '\0');
  head.replace(sizeof(uint32_t), kIdentifier.size(), kIdentifier);
  for (uint16_t each : kVtable) append_number(head, each);
  const uint64_t root = append_table(head);
  point(head, 0, root);
  put(head, root + 4, kFormatVersion);
  put(head, root + 8, kAdapterVersion);
  put(head, root + 12, kModelVersion);
  point(head, root + 16, head.size());
  append_number(head, static_cast<uint32_t>(tensors.size()));
  const uint64_t list = head.size();
  head.append(tensors.size() * sizeof(uint32_t), '\0');
  std::vector<uint64_t> data_fields;  // where offsets to bytes go
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSource& source = *tensors[i].source;
    const uint64_t table = append_table(head);
    point(head, list + i * sizeof(uint32_t), table);
    put(head, table + 12, adapter_dtype(source.dtype()));
    data_fields.push_back(table + 16);
    point(head, table + 4, head.size());
    append_number(head, static_cast<uint32_t>(tensors[i].name.size()));
    head += tensors[i].name;
    head += '\0';
    pad(head, 0, sizeof(uint32_t));
    point(head, table + 8, head.size());
    append_number(head, static_cast<uint32_t>(source.shape().size()));
    for (int64_t size : source.shape()) append_number(head, size);
  }
  AdapterLayout layout;
  uint64_t end = head.size();
  std::vector<std::string> before(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto size = static_cast<uint64_t>(tensors[i].source->bytes());
    pad(before[i], end, sizeof(uint32_t));
    point(head, data_fields[i], end + before[i].size());
    append_number(before[i], static_cast<uint32_t>(size));
    end += before[i].size() + size;
  }
  before[0].insert(0, head);
  for (size_t i = 0; i < tensors.size(); ++i)
    layout.pieces.push_back({std::move(before[i]), std::move(tensors[i].source)});
  layout.total_bytes = end;
  return layout;
}

Status write_adapter(const AdapterLayout& layout, OutputFile& file, size_t scratch_bytes) {
  for (const AdapterLayout::Piece& piece : layout.pieces) {
    ARGOSY_TRY_STATUS(file.write(piece.before));
    ARGOSY_TRY_STATUS(file.append(*piece.tensor, scratch_bytes));
  }
  ARGOSY_CHECK(file.size() == layout.total_bytes, "an adapter of another size than it was laid out with");
  return {};
}

}  // namespace argosy
