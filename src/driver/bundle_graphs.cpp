#include "driver/bundle_graphs.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "driver/export_manifest.h"
#include "io/file.h"
#include "io/inside_folder.h"
#include "io/names.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 2;  // of folders in which graphs are looked for

bool is_graph(std::string_view name) { return name.ends_with(".onnx") || name.ends_with(".pte"); }

}  // namespace

Result<BundleGraphs> listed_graphs(const fs::path& folder) {
  BundleGraphs result;
  fs::path path = folder / kBundleManifest;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return result;
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxManifest));
  ARGOSY_TRY(JsonDocument manifest, JsonDocument::parse_owned(std::move(text), quoted(path.native(), 1000)));
  std::set<std::string> seen;  // a program is listed once for each of its methods
  for (JsonView graph : manifest.root().find("graphs").items()) {
    std::string file = text_at(graph, "file");
    if (!is_graph(file) || !seen.insert(file).second) continue;
    if (!is_plain_relative_path(file)) {
      return fail(
          ErrorCode::kInvalidInput,
          format("{} lists {}, which is not a plain path inside the folder", quoted(path.native(), 1000), quoted(file)),
          "name the file itself");
    }
    ARGOSY_TRY_STATUS(check_inside_folder(folder / file, folder));
    result.graphs.push_back(std::move(file));
  }
  std::string engine = text_at(manifest.root(), "engine"), model = text_at(manifest.root(), "model_class");
  if (!model.empty()) result.about += ", " + model;
  if (!engine.empty()) result.about += ", for " + engine;
  return result;
}

std::vector<std::string> graphs_in(const fs::path& folder) {
  std::vector<std::string> graphs;
  std::error_code failure;
  for (fs::recursive_directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    std::error_code ignored;
    if (it.depth() >= kMaxDepth) it.disable_recursion_pending();
    if (is_graph(it->path().filename().string()) && it->is_regular_file(ignored))
      graphs.push_back(it->path().lexically_relative(folder).generic_string());
  }
  std::ranges::sort(graphs);
  return graphs;
}

}  // namespace argosy
