#include "frontends/pt2/archive.h"

#include "base/text.h"
#include "frontends/pt2/graph_json.h"
#include "frontends/pt2/weights.h"
#include "io/pt2_format.h"

namespace argosy {
namespace {

constexpr uint64_t kMaxMarker = 4096;

/// "llama/" of "llama/archive_format": all entries lie in one folder, whatever its name.
std::optional<std::string> root_folder(const ZipReader& zip) {
  for (const ZipEntry& entry : zip.entries()) {
    size_t slash = entry.name.find('/');
    if (slash == std::string::npos) continue;
    if (std::string_view(entry.name).substr(slash + 1) == kPt2FormatEntry) return entry.name.substr(0, slash + 1);
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

/// A marker must have that content; one that may be missing passes then.
Status check_marker(const ZipReader& zip, const std::string& name, std::string_view expected, bool is_required) {
  const ZipEntry* entry = zip.find(name);
  if (entry == nullptr) {
    if (!is_required) return {};
    return fail(ErrorCode::kCorruptFile, format("the archive has no entry {}", quoted(name)));
  }
  ARGOSY_TRY(std::string text, zip.read(*entry, kMaxMarker));
  if (trimmed(text) == expected) return {};
  return fail(ErrorCode::kUnsupportedVersion, format("{} is {}, only {} is read", name, quoted(text), quoted(expected)),
              "write the archive again with torch.export.save of a supported torch");
}

Status read_model(const ZipReader& zip, const ZipEntry& entry, const std::string& model, Pt2Weights& weights,
                  Program& program, const Pt2ReadOptions& options) {
  ARGOSY_TRY(std::string text, zip.read(entry, kMaxGraph));
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse_owned(std::move(text), entry.name));
  ARGOSY_TRY_STATUS(weights.read_configs(model));
  GraphJsonOptions graph_options;
  graph_options.schemas = options.schemas;
  graph_options.diagnostics = options.diagnostics;
  graph_options.bind_weight = [&](WeightKind kind, std::string_view name, DType dtype,
                                  const std::vector<int64_t>& shape) {
    return weights.bind(program, model, kind, name, dtype, shape);
  };
  ARGOSY_TRY(Component component, read_graph_json(document.root(), model, program, graph_options));
  program.components.push_back(std::move(component));
  return {};
}

}  // namespace

bool is_pt2(const ZipReader& zip) { return root_folder(zip).has_value(); }

Result<Program> read_pt2(const ZipReader& zip, const Pt2ReadOptions& options) {
  std::optional<std::string> root = root_folder(zip);
  if (!root) {
    return fail(ErrorCode::kCorruptFile, "not an archive of torch.export.save: it has no entry archive_format",
                "torch.jit and torch.save files are not read: export the model with torch.export");
  }
  ARGOSY_TRY_STATUS(check_marker(zip, format("{}{}", *root, kPt2FormatEntry), "pt2", true));
  ARGOSY_TRY_STATUS(check_marker(zip, format("{}{}", *root, kPt2VersionEntry), "0", true));
  ARGOSY_TRY_STATUS(check_marker(zip, format("{}{}", *root, kPt2ByteOrderEntry), "little", false));

  Program program;
  Pt2Weights weights(zip, *root);
  std::string folder = format("{}{}", *root, kPt2Models);
  for (const ZipEntry& entry : zip.entries()) {
    constexpr std::string_view kJson = ".json";
    if (!entry.name.starts_with(folder) || !entry.name.ends_with(kJson)) continue;
    std::string model = entry.name.substr(folder.size(), entry.name.size() - folder.size() - kJson.size());
    if (model.empty() || model.find('/') != std::string::npos) continue;
    if (Status status = read_model(zip, entry, model, weights, program, options); !status)
      return fail(std::move(status.error().in(format("entry {}", quoted(entry.name)))));
    const ZipEntry* sample = zip.find(format("{}{}{}.pt", *root, kPt2SampleInputs, model));
    if (options.sample_inputs == nullptr || sample == nullptr || sample->size == 0) continue;
    ARGOSY_TRY(TensorSourcePtr bytes,
               file_slice(zip.file(), sample->offset, DType::kU8, {static_cast<int64_t>(sample->size)}));
    options.sample_inputs->emplace(model, std::move(bytes));
  }
  if (program.components.empty()) {
    return fail(ErrorCode::kCorruptFile, format("the archive has no graph in {}", quoted(folder)),
                "AOTInductor packages hold compiled code, not a graph: use torch.export.save");
  }
  return program;
}

}  // namespace argosy
