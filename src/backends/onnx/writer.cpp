#include "backends/onnx/writer.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <set>

#include "backends/onnx/names.h"
#include "backends/onnx/overflow.h"
#include "base/text.h"
#include "io/link_file.h"
#include "io/output.h"

namespace argosy::onnx {
namespace {

namespace fs = std::filesystem;

/// The files of several bundles on their way: what is known of them is written, tensors have their places.
class FileWriter {
 public:
  explicit FileWriter(const TensorWriteOptions& options) : options_(options) { options_.sums = false; }

  /// What is added from now on is of the next bundle.
  void begin_bundle() { ++bundles_; }

  Status add(const Layout::DataFile& data, const fs::path& folder) {
    ARGOSY_TRY(OutputFile * file, create(folder / data.name));
    for (const Layout::Tensor& tensor : data.tensors) add({tensor.name, tensor.source.get(), tensor.offset, file});
    return {};
  }

  Status add(const NamedModel& about, EncodedModel model, const fs::path& folder) {
    models_.emplace_back(&about.model, bundles_ - 1);
    ARGOSY_TRY(OutputFile * file, create(folder / about.file));
    uint64_t position = 0;
    size_t from = 0;
    auto write_up_to = [&](size_t end) -> Status {
      std::string_view part = std::string_view(model.bytes).substr(from, end - from);
      ARGOSY_TRY_STATUS(file->write_at(position, std::as_bytes(std::span(part))));
      position += part.size();
      from = end;
      return {};
    };
    const std::vector<EncodedModel::Gap>& gaps = gaps_.emplace_back(std::move(model.gaps));
    for (const EncodedModel::Gap& gap : gaps) {
      ARGOSY_TRY_STATUS(write_up_to(gap.before));
      add({gap.name, gap.tensor.get(), position, file});
      position += static_cast<uint64_t>(gap.tensor->bytes());
    }
    return write_up_to(model.bytes.size());
  }

  /// Writes all tensors, and gives the files their names.
  Result<std::vector<Overflow>> finish() {
    std::vector<bool> is_watched;
    for (const PlacedTensor& tensor : tensors_) is_watched.push_back(may_overflow(*tensor.source));
    std::vector<std::atomic<uint64_t>> infinite(tensors_.size());
    if (std::ranges::find(is_watched, true) != is_watched.end()) {
      options_.observe = [&](size_t tensor, std::span<const std::byte> block) {
        if (is_watched[tensor]) infinite[tensor].fetch_add(infinities(block), std::memory_order_relaxed);
      };
    }
    ARGOSY_TRY_STATUS(write_tensors(tensors_, options_));
    for (size_t i = 0; i < tensors_.size(); ++i) {
      ARGOSY_TRY(uint64_t values, count_overflows(*tensors_[i].source, infinite[i].load()));
      if (values != 0) overflows_.push_back({std::string(tensors_[i].name), values, bundle_of_[i]});
    }
    for (auto [model, bundle] : models_) ARGOSY_TRY_STATUS(look_at_small(*model, bundle));
    for (OutputFile& file : files_) ARGOSY_TRY_STATUS(file.commit());
    return std::move(overflows_);
  }

 private:
  void add(const PlacedTensor& tensor) {
    tensors_.push_back(tensor);
    bundle_of_.push_back(bundles_ - 1);
  }

  /// Counts overflows of tensors that are stored inside the model's file.
  Status look_at_small(const Model& model, size_t bundle) {
    for (const Initializer& each : model.initializers) {
      if (each.tensor->bytes() > kSmallTensorBytes || !may_overflow(*each.tensor)) continue;
      if (!small_.emplace(bundle, each.tensor->recipe()).second) continue;
      ARGOSY_TRY(uint64_t values, count_overflows(*each.tensor));
      if (values != 0) overflows_.push_back({model[each.value].name, values, bundle});
    }
    return {};
  }

  Result<OutputFile*> create(const fs::path& path) {
    ARGOSY_TRY(OutputFile file, OutputFile::create(path, Overwrite::kRefuse));
    return &files_.emplace_back(std::move(file));
  }

  TensorWriteOptions options_;
  std::deque<OutputFile> files_;  // they stay where they are: tensors know them
  std::deque<std::vector<EncodedModel::Gap>> gaps_;
  size_t bundles_ = 0;
  std::vector<PlacedTensor> tensors_;
  std::vector<size_t> bundle_of_;  // for each tensor
  std::vector<std::pair<const Model*, size_t>> models_;
  std::vector<Overflow> overflows_;
  std::set<std::pair<size_t, std::string>> small_;  // bundles and recipes
};

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
  std::pair<const Bundle*, fs::path> only = {this, folder};
  return write_bundles(std::span(&only, 1), options);
}

Result<std::vector<Overflow>> write_bundles(std::span<const std::pair<const Bundle*, fs::path>> bundles,
                                            const TensorWriteOptions& options) {
  FileWriter writer(options);
  for (const auto& [bundle, folder] : bundles) {
    writer.begin_bundle();
    const Layout& layout = bundle->layout();
    for (const Layout::LinkedFile& file : layout.linked) ARGOSY_TRY_STATUS(link_file(file.from, folder / file.name));
    for (const Layout::DataFile& file : layout.data_files) ARGOSY_TRY_STATUS(writer.add(file, folder));
    for (size_t i = 0; i < bundle->models().size(); ++i) {
      ARGOSY_TRY(EncodedModel model, bundle->encoded(i));
      ARGOSY_TRY_STATUS(writer.add(bundle->models()[i], std::move(model), folder));
    }
  }
  return writer.finish();
}

}  // namespace argosy::onnx
