#include "backends/executorch/writer.h"

#include <algorithm>
#include <numeric>

#include "backends/executorch/encode.h"
#include "backends/executorch/memory_plan.h"
#include "base/align.h"
#include "base/check.h"
#include "base/text.h"
#include "io/output.h"

namespace argosy::executorch {
namespace {

uint64_t bytes_of(const NamedData& data) { return static_cast<uint64_t>(data.source->bytes()); }

/// Kernels want 16; a cache line is better where it costs nothing. Empty data is not aligned: no file ends in padding.
uint64_t place_after(uint64_t end, uint64_t size) {
  if (size == 0) return end;
  return rounded_up(end, size < 1024 ? 16 : 64);
}

/// Which pieces of data constants and states use.
struct Users {
  std::vector<bool> constants, states;
};

Result<Users> users_of(const Document& document) {
  std::map<std::string_view, size_t> index_of;
  for (size_t i = 0; i < document.data.size(); ++i) {
    ARGOSY_CHECK(index_of.emplace(document.data[i].key, i).second, "two pieces of data have one key");
  }
  Users users{std::vector<bool>(document.data.size()), std::vector<bool>(document.data.size())};
  for (const Method& method : document.methods) {
    for (const Value& value : method.values) {
      const auto* tensor = std::get_if<Tensor>(&value);
      if (!tensor || tensor->key.empty()) continue;
      auto found = index_of.find(tensor->key);
      ARGOSY_CHECK(found != index_of.end(), "a tensor's data is not in the document: " + tensor->key);
      if (tensor_bytes(*tensor) != bytes_of(document.data[found->second])) {
        return fail(ErrorCode::kInvalidInput, format("{} has {} bytes where the program wants {}", quoted(tensor->key),
                                                     bytes_of(document.data[found->second]), tensor_bytes(*tensor)));
      }
      (tensor->storage == Storage::kConstant ? users.constants : users.states)[found->second] = true;
    }
  }
  return users;
}

/// Payloads, one after the other from the beginning of the segments; the bytes, and where each one lies.
struct Payloads {
  std::string bytes;
  std::vector<std::vector<Segment>> segments;  // [method][delegate]
};

Payloads join_payloads(const Document& document) {
  Payloads result;
  for (const Method& method : document.methods) {
    result.segments.emplace_back();
    for (const Delegate& each : method.delegates) {
      result.bytes.resize(rounded_up(result.bytes.size(), kSegmentAlignment));
      result.segments.back().push_back({result.bytes.size(), each.payload.size()});
      result.bytes += each.payload;
    }
  }
  return result;
}

/// Segments in the order in which files want them: by offset, what lies inside another after it.
class SegmentSorter {
 public:
  size_t add(Segment segment) {
    segments_.push_back(segment);
    return segments_.size() - 1;
  }
  void sort() {
    order_.resize(segments_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(order_, [&](size_t a, size_t b) {
      if (segments_[a].offset != segments_[b].offset) return segments_[a].offset < segments_[b].offset;
      return segments_[a].size > segments_[b].size;
    });
    position_.resize(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = static_cast<uint32_t>(i);
  }
  uint32_t position(size_t added) const { return position_[added]; }
  std::vector<Segment> sorted() const {
    std::vector<Segment> result;
    for (size_t i : order_) result.push_back(segments_[i]);
    return result;
  }

 private:
  std::vector<Segment> segments_;
  std::vector<size_t> order_;
  std::vector<uint32_t> position_;
};

/// The pieces that `users` marks as one segment, which begins with the first and ends with the last of them.
Subsegments gather(const Document& document, const std::vector<Segment>& data, const std::vector<bool>& users,
                   Segment& whole) {
  Subsegments result;
  uint64_t begin = UINT64_MAX, end = 0;
  for (size_t i = 0; i < data.size(); ++i) {
    if (!users[i]) continue;
    begin = std::min(begin, data[i].offset);
    end = std::max(end, data[i].offset + data[i].size);
  }
  whole = begin <= end ? Segment{begin, end - begin} : Segment{};
  for (size_t i = 0; i < data.size(); ++i) {
    if (!users[i]) continue;
    result.indices[document.data[i].key] = static_cast<uint32_t>(result.offsets.size());
    result.offsets.push_back(data[i].offset - begin);
  }
  return result;
}

DataMap delegates_only(const Payloads& payloads, SegmentSorter& sorter) {
  DataMap map;
  for (const auto& method : payloads.segments) {
    map.delegates.emplace_back();
    for (const Segment& each : method) map.delegates.back().push_back(static_cast<uint32_t>(sorter.add(each)));
  }
  return map;
}

void finish(DataMap& map, SegmentSorter& sorter) {
  sorter.sort();
  map.segments = sorter.sorted();
  auto place = [&](uint32_t& index) { index = sorter.position(index); };
  for (auto& method : map.delegates) std::ranges::for_each(method, place);
  std::ranges::for_each(map.data, place);
  if (map.constants.offsets.size() > 1) place(map.constants.segment);
  if (map.states.offsets.size() > 1) place(map.states.segment);
}

}  // namespace

Result<Layout> Layout::build(Document document, DataPlace place) {
  Layout layout;
  layout.document_ = std::move(document);
  layout.place_ = place;
  ARGOSY_TRY_STATUS(place == DataPlace::kInside ? layout.build_inside() : layout.build_beside());
  return layout;
}

Status Layout::build_inside() {
  ARGOSY_TRY(Users users, users_of(document_));
  Payloads payloads = join_payloads(document_);
  // Constants first and together, as the runtime keeps their segment loaded; data that delegates have packed is freed,
  // and initial states are read once.
  std::vector<size_t> order(document_.data.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return users.constants[i] ? 0 : users.states[i] ? 2 : 1; });
  std::vector<Segment> data(document_.data.size());
  uint64_t end = payloads.bytes.size();
  if (!order.empty()) end = rounded_up(end, kSegmentAlignment);
  for (size_t i : order) {
    data[i] = {place_after(end, bytes_of(document_.data[i])), bytes_of(document_.data[i])};
    end = data[i].offset + data[i].size;
  }
  SegmentSorter sorter;
  DataMap map = delegates_only(payloads, sorter);
  Segment whole;
  map.constants = gather(document_, data, users.constants, whole);
  if (map.constants.offsets.size() > 1) map.constants.segment = static_cast<uint32_t>(sorter.add(whole));
  map.states = gather(document_, data, users.states, whole);
  if (map.states.offsets.size() > 1) map.states.segment = static_cast<uint32_t>(sorter.add(whole));
  for (const Segment& each : data) map.data.push_back(static_cast<uint32_t>(sorter.add(each)));
  finish(map, sorter);
  ARGOSY_TRY(program_head_, encode_program(document_, map));
  uint64_t begin = program_head_.size();
  program_head_ += payloads.bytes;
  for (const Segment& each : data) offsets_.push_back(begin + each.offset);
  program_bytes_ = begin + end;
  // All data may be empty; then the file ends where its last, empty piece is.
  if (std::ranges::all_of(data, [](const Segment& each) { return each.size == 0; }))
    program_head_.resize(program_bytes_);
  return {};
}

Status Layout::build_beside() {
  ARGOSY_TRY_STATUS(users_of(document_));
  Payloads payloads = join_payloads(document_);
  SegmentSorter sorter;
  DataMap map = delegates_only(payloads, sorter);
  map.is_beside = true;
  finish(map, sorter);
  ARGOSY_TRY(program_head_, encode_program(document_, map));
  program_head_ += payloads.bytes;
  program_bytes_ = program_head_.size();
  std::vector<Segment> data;
  uint64_t end = 0;
  for (const NamedData& each : document_.data) {
    data.push_back({place_after(end, bytes_of(each)), bytes_of(each)});
    end = data.back().offset + data.back().size;
  }
  data_head_ = encode_data(document_, data);
  for (const Segment& each : data) offsets_.push_back(data_head_.size() + each.offset);
  data_bytes_ = data_head_.size() + end;
  return {};
}

std::vector<PlacedTensor> Layout::placed(OutputFile& file) const {
  std::vector<PlacedTensor> result;
  for (size_t i = 0; i < offsets_.size(); ++i) {
    result.push_back({document_.data[i].key, document_.data[i].source.get(), offsets_[i], &file});
  }
  // In the order of the file, so that it grows from its beginning.
  std::ranges::stable_sort(result, {}, &PlacedTensor::offset);
  return result;
}

Status Layout::write(const std::filesystem::path& program, const std::filesystem::path& data,
                     const TensorWriteOptions& options) const {
  TensorWriteOptions without_sums = options;
  without_sums.sums = false;
  ARGOSY_TRY(OutputFile program_file, OutputFile::create(program, Overwrite::kRefuse));
  ARGOSY_TRY_STATUS(program_file.write(program_head_));
  if (place_ == DataPlace::kInside) {
    std::vector<PlacedTensor> tensors = placed(program_file);
    ARGOSY_TRY_STATUS(write_tensors(tensors, without_sums));
    return program_file.commit();
  }
  ARGOSY_TRY(OutputFile data_file, OutputFile::create(data, Overwrite::kRefuse));
  ARGOSY_TRY_STATUS(data_file.write(data_head_));
  std::vector<PlacedTensor> tensors = placed(data_file);
  ARGOSY_TRY_STATUS(write_tensors(tensors, without_sums));
  ARGOSY_TRY_STATUS(data_file.commit());
  return program_file.commit();
}

}  // namespace argosy::executorch
