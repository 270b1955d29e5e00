#include "io/checkpoint_index.h"

#include <algorithm>
#include <system_error>

#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "io/names.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexSuffix = ".safetensors.index.json";
constexpr std::string_view kFileSuffix = ".safetensors";
constexpr std::string_view kTorchFileSuffix = ".bin";
constexpr std::string_view kGgufSuffix = ".gguf";
constexpr std::string_view kTorchFile = "pytorch_model.bin", kTorchIndex = "pytorch_model.bin.index.json";

std::string list_names(const std::vector<fs::path>& paths) {
  std::vector<std::string> names;
  for (size_t i = 0; i < paths.size() && i < 5; ++i) names.push_back(paths[i].filename().native());
  if (paths.size() > 5) names.push_back(format("and {} more", paths.size() - 5));
  return join(names, ", ");
}

}  // namespace

bool is_torch_file(const fs::path& path) { return path.native().ends_with(kTorchFileSuffix); }

bool is_gguf_file(const fs::path& path) { return path.native().ends_with(kGgufSuffix); }

Result<CheckpointIndex> parse_checkpoint_index(std::string text, std::string_view name) {
  auto corrupt = [&](const std::string& why) {
    return fail(ErrorCode::kCorruptFile, format("{} is not a usable index of shards: {}", name, why),
                "get this file again from where the model comes from");
  };
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse_owned(std::move(text), name));
  JsonView map = document.root().find("weight_map");
  if (!map.is_object()) return corrupt("it has no weight_map");
  CheckpointIndex index;
  std::vector<std::pair<std::string_view, std::string_view>> rows;
  rows.reserve(map.size());
  for (auto [tensor, value] : map.members()) {
    auto file = value.as_string();
    if (tensor.empty()) return corrupt("a tensor has an empty name");
    if (!file) return corrupt(format("the file of tensor {} is not text", quoted(tensor)));
    rows.emplace_back(tensor, *file);
  }
  if (rows.empty()) return corrupt("its weight_map is empty");
  // Writers sort; then this costs one pass.
  if (!std::is_sorted(rows.begin(), rows.end())) std::sort(rows.begin(), rows.end());
  std::vector<std::string_view> files;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && rows[i].first == rows[i - 1].first) {
      return corrupt(format("it lists tensor {} twice", quoted(rows[i].first)));
    }
    if (i == 0 || rows[i].second != rows[i - 1].second) files.push_back(rows[i].second);
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  for (std::string_view file : files) {
    if (!is_plain_relative_path(file)) {
      return corrupt(format("it names the file {}, which is not a plain path inside its folder", quoted(file)));
    }
    if (!file.ends_with(kFileSuffix) && !file.ends_with(kTorchFileSuffix)) {
      return corrupt(format("it names the file {}, which is not called *.safetensors or *.bin", quoted(file)));
    }
  }
  index.shards.assign(files.begin(), files.end());
  index.tensors.reserve(rows.size());
  for (auto [tensor, file] : rows) {
    auto shard = std::lower_bound(files.begin(), files.end(), file) - files.begin();
    index.tensors.emplace_back(tensor, static_cast<uint32_t>(shard));
  }
  return index;
}

Result<fs::path> find_checkpoint_in(const fs::path& folder) {
  std::vector<fs::path> indices, files, pickles, ggufs;
  fs::path torch_file, torch_index;
  std::error_code failure;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    const fs::path& path = it->path();
    const std::string name = path.filename().native();
    if (name == "model.safetensors") return path;
    if (name.ends_with(kIndexSuffix)) indices.push_back(path);
    if (name.ends_with(kFileSuffix)) files.push_back(path);
    if (name.ends_with(kGgufSuffix)) ggufs.push_back(path);
    if (name == kTorchFile) torch_file = path;
    if (name == kTorchIndex) torch_index = path;
    if (name.ends_with(".bin") || name.ends_with(".pth") || name.ends_with(".pt")) pickles.push_back(path);
  }
  if (failure) return fail(system_error("list", folder, failure.value()));
  std::sort(indices.begin(), indices.end());
  std::sort(files.begin(), files.end());
  std::sort(pickles.begin(), pickles.end());
  std::sort(ggufs.begin(), ggufs.end());
  if (indices.size() == 1) return indices[0];
  std::string shown = quoted(folder.native(), 1000);
  if (indices.size() > 1) {
    return fail(ErrorCode::kInvalidInput, format("{} holds several checkpoints: {}", shown, list_names(indices)),
                "give the path of one of these files");
  }
  if (files.size() == 1) return files[0];
  if (files.size() > 1) {
    return fail(ErrorCode::kInvalidInput,
                format("{} holds {} safetensors files but no index: {}", shown, files.size(), list_names(files)),
                "if they are shards, get model.safetensors.index.json too; else give the path of one of them");
  }
  if (!torch_file.empty()) return torch_file;
  if (!torch_index.empty()) return torch_index;
  if (ggufs.size() == 1) return ggufs[0];
  if (ggufs.size() > 1) {
    return fail(ErrorCode::kInvalidInput, format("{} holds several GGUF files: {}", shown, list_names(ggufs)),
                "keep one of them in the folder; files in several parts are not read");
  }
  if (!pickles.empty()) {
    return fail(
        ErrorCode::kUnsupportedFeature,
        format("{} holds weights only as pickles of other names than {}: {}", shown, kTorchFile, list_names(pickles)),
        "if one of them is a state dict of torch.save, name it so; else save the model with save_pretrained");
  }
  return fail(ErrorCode::kNotFound,
              format("{} holds no checkpoint: no *.safetensors, no {}, no *.gguf", shown, kTorchFile),
              "check the path");
}

}  // namespace argosy
