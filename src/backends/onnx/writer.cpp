#include "backends/onnx/writer.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>

#include "backends/onnx/names.h"
#include "backends/onnx/overflow.h"
#include "base/text.h"
#include "io/link_file.h"
#include "io/output.h"

namespace argosy::onnx {
namespace {

namespace fs = std::filesystem;

/// Writes the tensors of several files one after the other, and counts over all of them.
class FileWriter {
 public:
  explicit FileWriter(const TensorWriteOptions& options) : options_(options) {}

  Status write(std::span<PlacedTensor> tensors, OutputFile& file) {
    std::vector<bool> is_watched;
    uint64_t bytes = 0;
    for (const PlacedTensor& tensor : tensors) {
      is_watched.push_back(may_overflow(*tensor.source));
      bytes += static_cast<uint64_t>(tensor.source->bytes());
    }
    std::vector<std::atomic<uint64_t>> infinite(tensors.size());
    TensorWriteOptions options = options_;
    options.sums = false;
    if (options_.progress) options.progress = [this](uint64_t done) { options_.progress(done_ + done); };
    if (std::ranges::find(is_watched, true) != is_watched.end()) {
      options.observe = [&](size_t tensor, std::span<const std::byte> block) {
        if (is_watched[tensor]) infinite[tensor].fetch_add(infinities(block), std::memory_order_relaxed);
      };
    }
    ARGOSY_TRY_STATUS(write_tensors(tensors, file, options));
    done_ += bytes;
    for (size_t i = 0; i < tensors.size(); ++i) {
      ARGOSY_TRY(uint64_t values, count_overflows(*tensors[i].source, infinite[i].load()));
      if (values != 0) overflows_.push_back({std::string(tensors[i].name), values});
    }
    return {};
  }

  /// Counts overflows of tensors that are stored inside the model's file.
  Status look_at_small(const Model& model) {
    for (const Initializer& each : model.initializers) {
      if (each.tensor->bytes() > kSmallTensorBytes || !may_overflow(*each.tensor)) continue;
      if (!small_.insert(each.tensor->recipe()).second) continue;
      ARGOSY_TRY(uint64_t values, count_overflows(*each.tensor));
      if (values != 0) overflows_.push_back({model[each.value].name, values});
    }
    return {};
  }

  std::vector<Overflow> take_overflows() { return std::move(overflows_); }

 private:
  const TensorWriteOptions& options_;
  uint64_t done_ = 0;
  std::vector<Overflow> overflows_;
  std::set<std::string> small_;  // recipes
};

Status write_data_file(const Layout::DataFile& data, const fs::path& folder, FileWriter& writer) {
  std::vector<PlacedTensor> placed;
  for (const Layout::Tensor& tensor : data.tensors) placed.push_back({tensor.name, tensor.source.get(), tensor.offset});
  ARGOSY_TRY(OutputFile file, OutputFile::create(folder / data.name, Overwrite::kRefuse));
  ARGOSY_TRY_STATUS(writer.write(placed, file));
  return file.commit();
}

Status write_model(const EncodedModel& model, const fs::path& path, FileWriter& writer) {
  ARGOSY_TRY(OutputFile file, OutputFile::create(path, Overwrite::kRefuse));
  std::vector<PlacedTensor> placed;
  uint64_t position = 0;
  size_t from = 0;
  auto write_up_to = [&](size_t end) -> Status {
    std::string_view part = std::string_view(model.bytes).substr(from, end - from);
    ARGOSY_TRY_STATUS(file.write_at(position, std::as_bytes(std::span(part))));
    position += part.size();
    from = end;
    return {};
  };
  for (const EncodedModel::Gap& gap : model.gaps) {
    ARGOSY_TRY_STATUS(write_up_to(gap.before));
    placed.push_back({gap.name, gap.tensor.get(), position});
    position += static_cast<uint64_t>(gap.tensor->bytes());
  }
  ARGOSY_TRY_STATUS(write_up_to(model.bytes.size()));
  if (!placed.empty()) ARGOSY_TRY_STATUS(writer.write(placed, file));
  return file.commit();
}

}  // namespace

Result<Bundle> Bundle::build(std::vector<NamedModel> models, const LayoutOptions& options) {
  Bundle bundle;
  bundle.models_ = std::move(models);
  std::vector<const Model*> parts;
  for (NamedModel& each : bundle.models_) {
    name_model(each.model);
    parts.push_back(&each.model);
  }
  ARGOSY_TRY(bundle.layout_, lay_out(parts, options));
  for (size_t i = 0; i < bundle.models_.size(); ++i) {
    ARGOSY_TRY(EncodedModel encoded, bundle.encoded(i));
    bundle.model_bytes_ += encoded.size();
  }
  return bundle;
}

uint64_t Bundle::new_bytes() const { return model_bytes_ + layout_.data_bytes(); }

uint64_t Bundle::linked_bytes() const {
  uint64_t bytes = 0;
  for (const Layout::LinkedFile& file : layout_.linked) bytes += file.bytes;
  return bytes;
}

Result<EncodedModel> Bundle::encoded(size_t index) const {
  auto encoded = encode(models_[index].model, layout_.places[index]);
  if (!encoded) return fail(std::move(encoded.error().in(format("encoding {}", quoted(models_[index].file)))));
  return encoded;
}

void Bundle::set_metadata(size_t index, std::string key, std::string value) {
  models_[index].model.metadata[std::move(key)] = std::move(value);
}

Result<std::vector<Overflow>> Bundle::write(const fs::path& folder, const TensorWriteOptions& options) const {
  FileWriter writer(options);
  for (const Layout::LinkedFile& file : layout_.linked) ARGOSY_TRY_STATUS(link_file(file.from, folder / file.name));
  for (const Layout::DataFile& file : layout_.data_files) ARGOSY_TRY_STATUS(write_data_file(file, folder, writer));
  for (size_t i = 0; i < models_.size(); ++i) {
    ARGOSY_TRY(EncodedModel model, encoded(i));
    ARGOSY_TRY_STATUS(write_model(model, folder / models_[i].file, writer));
    ARGOSY_TRY_STATUS(writer.look_at_small(models_[i].model));
  }
  return writer.take_overflows();
}

}  // namespace argosy::onnx
