#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "engines/device.h"
#include "io/json.h"

/// Engines that bundles are for: what each wants of graphs, names and files.
namespace argosy::engines {

/// Bytes; larger configurations are refused.
inline constexpr uint64_t kMaxConfig = uint64_t{16} << 20;
/// Names of the part of a multimodal configuration that is the text decoder.
inline constexpr std::string_view kTextParts[] = {"text_config", "decoder", "llm_config", "language_config",
                                                  "thinker_config"};

/// An input or output of a component, as captures describe it.
struct Port {
  std::string name;                                      // "past_key_values.0.key"
  std::string dtype;                                     // "f32"
  std::vector<std::variant<int64_t, std::string>> dims;  // a number, or a name; "" for one that nothing is known of
  std::vector<int64_t> sample;                           // sizes of an input in a small call; empty if none is known

  /// The size of a dim that is a number; counted from the end if negative.
  std::optional<int64_t> size(int dim) const;
};

/// One tensor that a component is given and gives back changed, such as the keys of a layer.
struct State {
  std::string input, output;  // names of ports
};

struct ComponentInterface {
  std::string name;
  std::vector<Port> inputs, outputs;
  std::vector<State> states;  // in the order of the inputs
  /// The largest number of tokens of a text that grows call by call; beyond it, the graph differs from the model.
  std::optional<int64_t> longest_text;

  const Port* input(std::string_view name) const;   // null if there is none
  const Port* output(std::string_view name) const;  // null if there is none
};

/// What an engine is told of the model that a bundle is made of.
struct SourceModel {
  std::filesystem::path folder;  // as far as the model has them, config.json, tokenizer and processor files
  std::string name;              // what the user called it, without folders of this machine: "ORG/NAME", or "NAME"
  std::string commit;            // of a snapshot of the Hub; may be empty
  std::string model_class, task;
  std::vector<ComponentInterface> components;
  /// Always there: config.json, else the capture's; without how the checkpoint quantises weights, which exports do not.
  std::optional<JsonDocument> config;
  bool is_config_changed = false;                                                     // it had that
  std::optional<JsonDocument> generation_config, tokenizer_config, processor_config;  // the files of these names
  std::vector<std::string> files;  // of the folder, sorted; names only
  const Device* device = nullptr;  // that the bundle is for; null: the CPU
  /// Names of graphs' files by components, in a plain bundle: those of an engine that builds on it.
  std::map<std::string, std::string> graph_files;
  std::string scheme;          // of linear layers in the bundle: "int4", "dynamic-int8"; empty: as the dtype has them
  bool is_mixed_half = false;  // graphs of f32 compute in f16 where that is safe
  std::vector<std::string> options;   // that change the bundle, as a command line has them; for its card and manifest
  std::vector<std::string> left_out;  // files that are links out of the folder, sorted; not read and not copied

  const ComponentInterface* component(std::string_view name) const;  // null if there is none
  bool has_file(std::string_view file) const;
  std::string_view model_type() const;  // of config.json; "" if it has none
  /// The part of the configuration that describes the text decoder: in multimodal models a member, else all of it.
  JsonView text_config() const;
  /// A number of the text decoder's configuration, by the first of these names that it has.
  std::optional<int64_t> text_number(std::initializer_list<std::string_view> names) const;
  /// `length`, or less where a component is right for shorter texts only.
  std::optional<int64_t> within_limits(std::optional<int64_t> length) const;
  /// The ids of a special token ("eos_token_id"): the generation configuration's, else the configuration's. May be
  /// none.
  std::vector<int64_t> token_ids(std::string_view key) const;
};

/// Lists a folder's files into `model`. A link that leads out of it (io/inside_folder.h) is left out; if it is a
/// configuration, "*config.json", which decides what is written, it is an error.
Status list_model_files(SourceModel& model);

/// Reads what the engines need. `manifest` is capture.json of the model's capture; `folder` may be empty if there is
/// only that.
Result<SourceModel> read_source_model(const std::filesystem::path& folder, JsonView manifest);

/// Where graphs are right, a line for each limit that the trace had: "decode is right where total_sequence <= 2048
/// (modeling_x.py:240)". `manifest` as above.
std::vector<std::string> limit_lines(JsonView manifest);

}  // namespace argosy::engines
