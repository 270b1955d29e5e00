#include "engines/lint_bundle.h"

#include <algorithm>
#include <system_error>

#include "base/text.h"
#include "engines/model.h"
#include "io/file.h"

namespace argosy::engines {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 3;  // of folders below the bundle's; weights and graphs lie at most one deep
constexpr size_t kMaxFiles = 20'000;
constexpr size_t kMaxGraphs = 100;
constexpr uint64_t kMaxTokenizer = uint64_t{256} << 20;
constexpr uint64_t kMaxShapeBytes = 64;  // 8 dims
constexpr int64_t kMaxTokens = int64_t{1} << 26;

/// The files that rules look into. tokenizer.json may be large.
constexpr std::string_view kJsonFiles[] = {
    "audio_processor_config.json", "bundle.json",       "chat_template.json",       "config.json",
    "generation_config.json",      "genai_config.json", "preprocessor_config.json", "processor_config.json",
    "special_tokens_map.json",     "tokenizer.json",    "tokenizer_config.json",
};

bool is_inside(const fs::path& path, const fs::path& folder) {
  auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

/// Fills `files` with what is below `folder`; false: there is more than is listed. Links to folders are not entered,
/// names that begin with '.' belong to other tools.
bool list(const fs::path& root, const fs::path& canonical_root, const std::string& below, int depth,
          std::vector<LintedFile>& files, std::error_code& error) {
  bool is_complete = true;
  for (fs::directory_iterator entry(root / below, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().native();
    if (name.starts_with('.')) continue;
    std::string relative = below.empty() ? name : below + "/" + name;
    std::error_code ignored;
    bool is_link = entry->is_symlink(ignored);
    if (!is_link && entry->is_directory(ignored)) {
      std::error_code inner;
      if (depth >= kMaxDepth || !list(root, canonical_root, relative, depth + 1, files, inner)) is_complete = false;
      continue;
    }
    if (files.size() >= kMaxFiles) return false;
    LintedFile& file = files.emplace_back();
    file.name = std::move(relative);
    file.is_regular = entry->is_regular_file(ignored);
    if (file.is_regular) file.size = entry->file_size(ignored);
    if (is_link) {
      fs::path target = fs::weakly_canonical(entry->path(), ignored);
      file.leaves = !ignored && !is_inside(target, canonical_root);
    }
  }
  return is_complete;
}

/// What a graph has far more of than any model; empty if nothing. Rules do not get such graphs, so they may be slow.
std::string excess(const OnnxModel& model) {
  struct Limit {
    std::string_view what;
    size_t count, most;
  };
  for (const Limit& limit :
       {Limit{"inputs", model.inputs.size(), 5'000}, Limit{"outputs", model.outputs.size(), 5'000},
        Limit{"kinds of ops", model.ops.size(), 5'000}, Limit{"functions", model.functions.size(), 5'000},
        Limit{"imports", model.opset_imports.size(), 500},
        Limit{"external files", model.external_files.size(), 50'000}}) {
    if (limit.count > limit.most) return format("it has {} {}, far more than any model", limit.count, limit.what);
  }
  return "";
}

const OnnxValue* find_value(const std::vector<OnnxValue>& values, std::string_view name) {
  for (const OnnxValue& value : values) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

}  // namespace

const OnnxValue* LintedGraph::input(std::string_view name) const {
  return model ? find_value(model->inputs, name) : nullptr;
}

const OnnxValue* LintedGraph::output(std::string_view name) const {
  return model ? find_value(model->outputs, name) : nullptr;
}

uint64_t LintedGraph::count_of(std::string_view domain, std::string_view op) const {
  if (!model) return 0;
  for (const OnnxOpCount& each : model->ops) {
    if (each.op_type == op && each.domain == domain) return each.count;
  }
  return 0;
}

std::string_view LintedGraph::folder() const {
  size_t slash = file.rfind('/');
  return slash == std::string::npos ? std::string_view() : std::string_view(file).substr(0, slash);
}

std::string_view LintedGraph::stem() const {
  std::string_view name = file;
  if (size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  return name.substr(0, name.rfind('.'));
}

LintedVocabulary::LintedVocabulary(JsonView tokenizer)
    : vocabulary_(tokenizer.find("model").find("vocab")), added_(tokenizer.find("added_tokens")) {
  auto add = [&](std::optional<int64_t> id) {
    if (!id || *id < 0 || *id >= kMaxTokens) return;
    if (*id >= size_) ids_.resize(static_cast<size_t>(size_ = *id + 1));
    ids_[static_cast<size_t>(*id)] = true;
  };
  if (vocabulary_.is_array()) {  // of a unigram model: the id is the position
    int64_t id = 0;
    for ([[maybe_unused]] JsonView item : vocabulary_.items()) add(id++);
  }
  for (auto [token, id] : vocabulary_.members()) add(id.as_integer());
  for (JsonView item : added_.items()) add(item.find("id").as_integer());
}

bool LintedVocabulary::has(int64_t id) const { return id >= 0 && id < size_ && ids_[static_cast<size_t>(id)]; }

std::optional<int64_t> LintedVocabulary::id_of(std::string_view token) const {
  for (JsonView item : added_.items()) {
    if (item.find("content").as_string() == token) return item.find("id").as_integer();
  }
  if (!vocabulary_.is_array()) return vocabulary_.find(token).as_integer();
  int64_t id = 0;
  for (JsonView item : vocabulary_.items()) {
    for (JsonView first : item.items()) {
      if (first.as_string() == token) return id;
      break;
    }
    ++id;
  }
  return std::nullopt;
}

Result<LintedBundle> LintedBundle::read(const fs::path& folder, const ProgramReader& reader) {
  LintedBundle bundle;
  bundle.folder_ = folder;
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return fail(ErrorCode::kNotFound, format("there is no folder {}", quoted(folder.native(), 1000)),
                "name the folder of the bundle, not a file in it");
  }
  fs::path canonical = fs::canonical(folder, error);
  if (!error) bundle.has_more_files_ = !list(folder, canonical, "", 0, bundle.files_, error);
  if (error) return fail(ErrorCode::kIo, format("cannot list {}: {}", quoted(folder.native(), 1000), error.message()));
  std::sort(bundle.files_.begin(), bundle.files_.end(),
            [](const LintedFile& a, const LintedFile& b) { return a.name < b.name; });

  for (const LintedFile& file : bundle.files_) {
    if (!file.name.ends_with(".onnx") || !file.is_regular) continue;
    if (bundle.graphs_.size() >= kMaxGraphs) {
      bundle.has_more_files_ = true;
      break;
    }
    LintedGraph& graph = bundle.graphs_.emplace_back();
    graph.file = file.name;
    Result<OnnxModel> model = read_onnx_model(folder / file.name, OnnxExternalData::kAsWritten);
    if (!model) {
      graph.problem = model.error().message;
      continue;
    }
    graph.problem = excess(*model);
    if (!graph.problem.empty()) continue;
    graph.model = *std::move(model);
    std::set<std::string_view> inputs;
    for (const OnnxValue& input : graph.model->inputs) inputs.insert(input.name);
    for (const OnnxInitializer& tensor : graph.model->initializers) {
      if (inputs.contains(tensor.name)) graph.defaults.insert(tensor.name);
      LintedGraph::Weights& weights = graph.weights[tensor.type];
      ++weights.count;
      weights.bytes += tensor.bytes;
      bool is_small = tensor.shape.size() <= 1 && tensor.bytes <= kMaxShapeBytes;
      if (tensor.type == "i64" && is_small && !tensor.location.empty()) graph.external_numbers.push_back(tensor.name);
    }
    graph.model->initializers = {};  // many graphs of many tensors would take much memory
  }
  for (const LintedFile& file : bundle.files_) {
    if (!reader || !file.name.ends_with(".pte") || !file.is_regular || bundle.programs_.size() >= kMaxGraphs) continue;
    LintedProgram& program = bundle.programs_.emplace_back(reader(folder / file.name));
    program.file = file.name;
  }
  for (std::string_view name : kJsonFiles) {
    if (!bundle.has(name)) continue;
    bool is_tokenizer = name == "tokenizer.json";
    JsonLimits limits;
    limits.max_bytes = is_tokenizer ? kMaxTokenizer : kMaxConfig;
    auto document = read_text_file(folder / name, limits.max_bytes).and_then([&](std::string text) {
      return JsonDocument::parse_owned(std::move(text), name, limits);
    });
    if (document)
      bundle.json_.emplace(name, *std::move(document));
    else
      bundle.unreadable_json_.emplace(name, document.error().message);
  }
  if (JsonView tokenizer = bundle.json("tokenizer.json"); tokenizer.is_object()) {
    LintedVocabulary vocabulary(tokenizer);
    if (!vocabulary.is_empty()) bundle.vocabulary_ = std::move(vocabulary);
  }
  return bundle;
}

const LintedFile* LintedBundle::file(std::string_view name) const {
  auto found = std::lower_bound(files_.begin(), files_.end(), name,
                                [](const LintedFile& file, std::string_view wanted) { return file.name < wanted; });
  return found != files_.end() && found->name == name ? &*found : nullptr;
}

bool LintedBundle::has(std::string_view name) const {
  const LintedFile* found = file(name);
  return found != nullptr && found->is_regular;
}

const LintedGraph* LintedBundle::graph(std::string_view wanted) const {
  for (const LintedGraph& each : graphs_) {
    if (each.file == wanted) return &each;
  }
  return nullptr;
}

JsonView LintedBundle::json(std::string_view file) const {
  auto found = json_.find(file);
  return found == json_.end() ? JsonView() : found->second.root();
}

std::string_view LintedBundle::model_type() const { return config().find("model_type").as_string().value_or(""); }

JsonView LintedBundle::text_config() const {
  for (std::string_view part : kTextParts) {
    if (JsonView found = config().find(part); found.is_object()) return found;
  }
  return config();
}

std::optional<int64_t> LintedBundle::text_number(std::initializer_list<std::string_view> names) const {
  for (JsonView part : {text_config(), config()}) {
    for (std::string_view wanted : names) {
      if (auto number = part.find(wanted).as_integer()) return number;
    }
  }
  return std::nullopt;
}

std::vector<int64_t> integers(JsonView value) {
  if (!value.is_valid()) return {};
  if (auto number = value.as_integer()) return {*number};
  std::vector<int64_t> numbers;
  for (JsonView item : value.items()) {
    if (auto number = item.as_integer()) numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace argosy::engines
