#include "engines/model.h"

#include <algorithm>

#include "base/text.h"
#include "engines/rewrite_json.h"
#include "io/file.h"
#include "io/inside_folder.h"

namespace argosy::engines {
namespace {

namespace fs = std::filesystem;

std::string text_of(JsonView view) { return std::string(view.as_string().value_or("")); }

std::vector<Port> ports(JsonView list) {
  std::vector<Port> ports;
  for (JsonView item : list.items()) {
    Port& port = ports.emplace_back();
    port.name = text_of(item.find("path"));
    if (port.name.empty()) port.name = text_of(item.find("name"));
    port.dtype = text_of(item.find("dtype"));
    for (JsonView dim : item.find("dims").items()) {
      if (auto number = dim.as_integer())
        port.dims.emplace_back(*number);
      else
        port.dims.emplace_back(text_of(dim));
    }
    for (JsonView size : item.find("sample").items()) port.sample.push_back(size.as_integer().value_or(0));
  }
  return ports;
}

/// How long texts may be, by ranges of dims and guards of the trace.
void read_limits(JsonView json, ComponentInterface& component) {
  auto shorten = [&](std::optional<int64_t> length) {
    if (length && *length > 0) component.longest_text = std::min(*length, component.longest_text.value_or(*length));
  };
  shorten(json.find("dims").find("total_sequence").find("max").as_integer());
  for (JsonView guard : json.find("guards").items()) shorten(guard.find("longest").as_integer());
}

ComponentInterface component_interface(JsonView json) {
  ComponentInterface component;
  component.name = text_of(json.find("name"));
  component.inputs = ports(json.find("inputs"));
  component.outputs = ports(json.find("outputs"));
  for (JsonView state : json.find("cache").find("states").items())
    component.states.push_back({text_of(state.find("path")), text_of(state.find("output"))});
  read_limits(json, component);
  return component;
}

const Port* find_port(const std::vector<Port>& ports, std::string_view name) {
  for (const Port& port : ports) {
    if (port.name == name) return &port;
  }
  return nullptr;
}

Result<JsonDocument> read_json(const fs::path& path) {
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxConfig));
  return JsonDocument::parse_owned(std::move(text), path.filename().native());
}

Result<std::optional<JsonDocument>> read_json_if_any(const SourceModel& model, std::string_view file) {
  if (!model.has_file(file)) return std::optional<JsonDocument>();
  ARGOSY_TRY(JsonDocument document, read_json(model.folder / file));
  return std::optional(std::move(document));
}

/// By the folder: models--ORG--NAME/snapshots/COMMIT is the Hub's, any other has a name of its own.
Status name_model(SourceModel& model) {
  model.name = "model";
  if (model.folder.empty()) return {};
  std::error_code error;
  fs::path path = fs::weakly_canonical(model.folder, error);
  if (error) return fail(system_error("examine", model.folder, error.value()));
  if (!path.has_filename()) path = path.parent_path();
  model.name = path.filename();
  if (path.parent_path().filename() != "snapshots") return {};
  std::string repository = path.parent_path().parent_path().filename();
  constexpr std::string_view kPrefix = "models--";
  if (!repository.starts_with(kPrefix)) return {};
  model.commit = model.name;
  model.name = repository.substr(kPrefix.size());
  if (size_t dashes = model.name.find("--"); dashes != std::string::npos) model.name.replace(dashes, 2, "/");
  return {};
}

/// Weights of exports are not stored as a quantised checkpoint has them: engines would look for what is not there.
Status leave_out_quantization(SourceModel& model) {
  constexpr const char* kKey = "quantization_config";
  if (!model.config->root().find(kKey).is_valid()) return {};
  const JsonChange change{{kKey}, nullptr};
  ARGOSY_TRY(model.config, JsonDocument::parse_owned(rewritten(model.config->root(), {&change, 1}), "config.json"));
  model.is_config_changed = true;
  return {};
}

}  // namespace

Status list_model_files(SourceModel& model) {
  std::error_code error;
  for (fs::directory_iterator entry(model.folder, error), end; !error && entry != end; entry.increment(error)) {
    if (std::error_code ignored; !entry->is_regular_file(ignored)) continue;
    std::string name = entry->path().filename();
    Status inside = check_inside_folder(entry->path(), model.folder);
    if (!inside && name.ends_with("config.json")) return inside;
    (inside ? model.files : model.left_out).push_back(std::move(name));
  }
  if (error) return fail(system_error("list", model.folder, error.value()));
  std::sort(model.files.begin(), model.files.end());
  std::sort(model.left_out.begin(), model.left_out.end());
  return {};
}

std::optional<int64_t> Port::size(int dim) const {
  auto index = dim < 0 ? dim + static_cast<int>(dims.size()) : dim;
  if (index < 0 || index >= static_cast<int>(dims.size())) return std::nullopt;
  const auto* number = std::get_if<int64_t>(&dims[static_cast<size_t>(index)]);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

const Port* ComponentInterface::input(std::string_view wanted) const { return find_port(inputs, wanted); }
const Port* ComponentInterface::output(std::string_view wanted) const { return find_port(outputs, wanted); }

const ComponentInterface* SourceModel::component(std::string_view wanted) const {
  for (const ComponentInterface& each : components) {
    if (each.name == wanted) return &each;
  }
  return nullptr;
}

std::optional<int64_t> SourceModel::within_limits(std::optional<int64_t> length) const {
  for (const ComponentInterface& each : components) {
    if (each.longest_text) length = std::min(*each.longest_text, length.value_or(*each.longest_text));
  }
  return length;
}

std::vector<std::string> limit_lines(JsonView manifest) {
  std::vector<std::string> lines;
  for (JsonView component : manifest.find("components").items()) {
    for (JsonView guard : component.find("guards").items()) {
      std::string where = text_of(guard.find("where"));
      lines.push_back(format("{} is right where {}{}", text_of(component.find("name")),
                             text_of(guard.find("condition")), where.empty() ? "" : format(" ({})", where)));
    }
  }
  return lines;
}

bool SourceModel::has_file(std::string_view file) const { return std::binary_search(files.begin(), files.end(), file); }

std::string_view SourceModel::model_type() const { return config->root().find("model_type").as_string().value_or(""); }

JsonView SourceModel::text_config() const {
  for (std::string_view part : kTextParts) {
    if (JsonView found = config->root().find(part); found.is_object()) return found;
  }
  return config->root();
}

std::optional<int64_t> SourceModel::text_number(std::initializer_list<std::string_view> names) const {
  for (JsonView part : {text_config(), config->root()}) {
    for (std::string_view wanted : names) {
      if (auto number = part.find(wanted).as_integer()) return number;
    }
  }
  return std::nullopt;
}

std::vector<int64_t> SourceModel::token_ids(std::string_view key) const {
  for (JsonView part : {generation_config ? generation_config->root() : JsonView(), text_config(), config->root()}) {
    JsonView value = part.is_valid() ? part.find(key) : JsonView();
    if (!value.is_valid()) continue;
    if (auto number = value.as_integer()) return {*number};
    std::vector<int64_t> ids;
    for (JsonView item : value.items()) {
      if (auto number = item.as_integer()) ids.push_back(*number);
    }
    if (!ids.empty()) return ids;
  }
  return {};
}

Result<SourceModel> read_source_model(const fs::path& folder, JsonView manifest) {
  SourceModel model;
  model.folder = folder;
  ARGOSY_TRY_STATUS(name_model(model));
  model.model_class = text_of(manifest.find("model_class"));
  model.task = text_of(manifest.find("task"));
  for (JsonView each : manifest.find("components").items()) model.components.push_back(component_interface(each));
  if (!folder.empty()) ARGOSY_TRY_STATUS(list_model_files(model));
  // A capture has its model's configuration; the model's own file may say more.
  if (model.has_file("config.json")) {
    ARGOSY_TRY(JsonDocument config, read_json(folder / "config.json"));
    model.config = std::move(config);
  } else {
    JsonWriter text;
    text.value(manifest.find("configuration"));
    ARGOSY_TRY(JsonDocument config, JsonDocument::parse_owned(text.take(), "configuration"));
    model.config = std::move(config);
  }
  ARGOSY_TRY_STATUS(leave_out_quantization(model));
  ARGOSY_TRY(model.generation_config, read_json_if_any(model, "generation_config.json"));
  ARGOSY_TRY(model.tokenizer_config, read_json_if_any(model, "tokenizer_config.json"));
  ARGOSY_TRY(model.processor_config, read_json_if_any(model, "processor_config.json"));
  return model;
}

}  // namespace argosy::engines
