#include "backends/onnx/layout.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/align.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

constexpr size_t kShownMissing = 10;

bool is_shape_only(const TensorSource& source) { return source.recipe().starts_with("shape_only("); }

/// What tells bytes apart: where they lie, or how they are made. Reshaping changes neither.
std::string identity_of(const TensorSource& source) {
  if (auto range = source.file_range()) return format("{}@{}+{}", range->path, range->offset, range->size);
  return source.kind() == SourceKind::kReshape ? identity_of(*source.inputs().front()) : source.recipe();
}

class Placer {
 public:
  Placer(std::span<const Model* const> models, const LayoutOptions& options) : models_(models), options_(options) {}

  Result<Layout> run() {
    for (const Model* model : models_) {
      std::vector<TensorPlace>& places = layout_.places.emplace_back(model->initializers.size());
      for (size_t i = 0; i < places.size(); ++i) place(*model, model->initializers[i], places[i]);
    }
    ARGOSY_TRY_STATUS(report_missing());
    // Offsets are given when all tensors are known, large ones first: between small ones little is lost.
    std::vector<TensorPlace> given(tensors_.size());
    for (bool is_large : {true, false}) {
      for (size_t index = 0; index < tensors_.size(); ++index) {
        if ((tensors_[index].source->bytes() >= static_cast<int64_t>(kLargeAlignment)) == is_large)
          given[index] = append(tensors_[index], is_large ? kLargeAlignment : kSmallAlignment);
      }
    }
    for (auto [place, tensor] : in_data_file_) *place = given[tensor];
    return std::move(layout_);
  }

 private:
  TensorPlace append(Layout::Tensor tensor, uint64_t alignment) {
    std::vector<Layout::DataFile>& files = layout_.data_files;
    auto size = static_cast<uint64_t>(tensor.source->bytes());
    auto end = [&] { return rounded_up(files.back().bytes, alignment) + size; };
    if (files.empty()) {
      files.push_back({options_.data_file, {}, 0});
    } else if (options_.max_data_bytes != 0 && end() > options_.max_data_bytes) {
      files.push_back({format("{}_{}", options_.data_file, files.size()), {}, 0});
    }
    tensor.offset = rounded_up(files.back().bytes, alignment);
    files.back().bytes = end();
    TensorPlace place{files.back().name, tensor.offset};
    files.back().tensors.push_back(std::move(tensor));
    return place;
  }

  void place(const Model& model, const Initializer& initializer, TensorPlace& place) {
    const std::string& name = model[initializer.value].name;
    const TensorSource& source = *initializer.tensor;
    if (is_shape_only(source)) {
      missing_.push_back(quoted(name));
      return;
    }
    if (options_.weights == WeightsMode::kEmbed || source.bytes() <= kSmallTensorBytes) return;
    if (link(source, place)) return;
    auto [found, is_new] = indices_.try_emplace(identity_of(source), tensors_.size());
    if (is_new) tensors_.push_back({name, initializer.tensor, 0});
    in_data_file_.emplace_back(&place, found->second);
  }

  bool link(const TensorSource& source, TensorPlace& place) {
    if (options_.weights != WeightsMode::kLink) return false;
    auto range = source.file_range();
    if (!range || !options_.linkable.contains(range->path)) return false;
    auto [found, is_new] = linked_.try_emplace(range->path, layout_.linked.size());
    if (is_new) {
      std::filesystem::path from = range->path;
      layout_.linked.push_back({from, link_name(from), 0});
    }
    Layout::LinkedFile& file = layout_.linked[found->second];
    if (indices_.try_emplace(identity_of(source), 0).second) file.bytes += range->size;
    place = {file.name, range->offset};
    return true;
  }

  std::string link_name(const std::filesystem::path& from) const {
    std::string name = options_.link_prefix + from.filename().string(), unique = name;
    auto is_taken = [&](const Layout::LinkedFile& file) { return file.name == unique; };
    for (int n = 2; std::ranges::any_of(layout_.linked, is_taken); ++n) unique = format("{}-{}", n, name);
    return unique;
  }

  Status report_missing() const {
    if (missing_.empty()) return {};
    std::vector<std::string> shown(missing_.begin(),
                                   missing_.begin() + static_cast<ptrdiff_t>(std::min(kShownMissing, missing_.size())));
    if (missing_.size() > kShownMissing) shown.push_back(format("and {} more", missing_.size() - kShownMissing));
    return fail(ErrorCode::kNotFound, format("the bytes of these weights are not known: {}", join(shown, ", ")),
                "give the checkpoint, or ask for a model without weights");
  }

  std::span<const Model* const> models_;
  const LayoutOptions& options_;
  Layout layout_;
  std::vector<std::string> missing_;
  std::vector<Layout::Tensor> tensors_;                        // of data files, in the order of the models
  std::unordered_map<std::string, size_t> indices_;            // identity -> index in tensors_
  std::map<std::string, size_t> linked_;                       // path -> index in Layout::linked
  std::vector<std::pair<TensorPlace*, size_t>> in_data_file_;  // and the tensor there
};

}  // namespace

uint64_t Layout::data_bytes() const {
  uint64_t bytes = 0;
  for (const DataFile& file : data_files) bytes += file.bytes;
  return bytes;
}

Result<Layout> lay_out(std::span<const Model* const> models, const LayoutOptions& options) {
  return Placer(models, options).run();
}

}  // namespace argosy::onnx
