#include "engines/genai/processor.h"

#include <array>

#include "base/text.h"
#include "io/file.h"

namespace argosy::engines::genai {
namespace {

constexpr uint64_t kMaxSettings = uint64_t{16} << 20;

tl::unexpected<Error> cannot(const std::string& what) {
  return fail(ErrorCode::kUnsupportedFeature, format("ONNX Runtime GenAI cannot prepare this model's media: {}", what));
}

/// How the engine calls Pillow's filters, by their number.
Result<std::string_view> filter_name(JsonView number, std::string_view otherwise) {
  if (!number.is_valid() || number.is_null()) return otherwise;
  switch (number.as_integer().value_or(-1)) {
    case 0: return "NEAREST";
    case 1: return "LANCZOS";
    case 2: return "LINEAR";
    case 3: return "CUBIC";
    default: return cannot("it has no such filter for sizes as \"resample\" asks for");
  }
}

std::array<double, 3> colours(JsonView list, double otherwise) {
  std::array<double, 3> values = {otherwise, otherwise, otherwise};
  size_t i = 0;
  for (JsonView item : list.items()) {
    if (i < values.size()) values[i++] = item.as_double().value_or(otherwise);
  }
  return values;
}

bool is_on(JsonView settings, std::string_view key, bool otherwise) {
  return settings.find(key).as_bool().value_or(otherwise);
}

/// Writes a list of operations.
class Operations {
 public:
  Operations(std::string_view kind, std::string_view list) {
    json_.begin_object().key(kind).begin_object();
    if (kind == "processor") json_.key("name").value("image_processing");
    json_.key(list).begin_array();
  }
  JsonWriter& begin(std::string_view name, std::string_view type) {
    json_.begin_object().key("operation").begin_object();
    json_.key("name").value(name);
    json_.key("type").value(type);
    return json_.key("attrs").begin_object();
  }
  void end() { json_.end_object().end_object().end_object(); }
  void plain(std::string_view name, std::string_view type) {
    json_.begin_object().key("operation").begin_object();
    json_.key("name").value(name);
    json_.key("type").value(type);
    json_.end_object().end_object();
  }
  std::string take() {
    json_.end_array().end_object().end_object();
    return json_.take() + "\n";
  }

 private:
  JsonWriter json_{JsonWriter::Layout::kIndented};
};

void decode(Operations& operations) {
  operations.begin("decode_image", "DecodeImage").key("color_space").value("RGB");
  operations.end();
}

Status scale_colours(Operations& operations, JsonView settings) {
  if (!is_on(settings, "do_rescale", true)) return cannot("its pictures keep values up to 255");
  operations.begin("rescale", "Rescale")
      .key("rescale_factor")
      .value(settings.find("rescale_factor").as_double().value_or(1.0 / 255));
  operations.end();
  bool normalises = is_on(settings, "do_normalize", true);
  JsonWriter& json = operations.begin("normalize", "Normalize");
  auto write = [&](std::string_view key, const std::array<double, 3>& values) {
    json.key(key).begin_array();
    for (double value : values) json.value(value);
    json.end_array();
  };
  write("mean", normalises ? colours(settings.find("image_mean"), 0.5) : std::array<double, 3>{});
  write("std", normalises ? colours(settings.find("image_std"), 0.5) : std::array<double, 3>{1, 1, 1});
  operations.end();
  return {};
}

}  // namespace

Result<ProcessorSettings> ProcessorSettings::read(const SourceModel& model, std::string_view part) {
  ProcessorSettings settings;
  for (std::string_view file : {"preprocessor_config.json", "processor_config.json"}) {
    if (!model.has_file(file)) continue;
    ARGOSY_TRY(std::string text, read_text_file(model.folder / file, kMaxSettings));
    ARGOSY_TRY(settings.document_, JsonDocument::parse_owned(std::move(text), std::string(file)));
    bool is_whole = file == "preprocessor_config.json";
    settings.part_ = is_whole ? "" : std::string(part);
    if (settings.is_valid()) break;
  }
  return settings;
}

JsonView ProcessorSettings::root() const {
  if (!document_) return {};
  return part_.empty() ? document_->root() : document_->root().find(part_);
}

Result<std::string> fixed_size_processor(const ProcessorSettings& settings) {
  JsonView root = settings.root();
  if (!root.is_valid()) return cannot("the model has no preprocessor_config.json");
  if (is_on(root, "do_pan_and_scan", false)) return cannot("it has no operation that cuts pictures into crops");
  auto height = root.find("size").find("height").as_integer(), width = root.find("size").find("width").as_integer();
  if (!height || !width || *height <= 0 || *width <= 0) return cannot("\"size\" has no height and width");
  ARGOSY_TRY(std::string_view filter, filter_name(root.find("resample"), "LINEAR"));
  Operations operations("processor", "transforms");
  decode(operations);
  JsonWriter& json = operations.begin("resize", "Resize");
  json.key("height").value(*height);
  json.key("width").value(*width);
  json.key("keep_aspect_ratio").value(int64_t{0});
  json.key("interpolation").value(filter);
  operations.end();
  ARGOSY_TRY_STATUS(scale_colours(operations, root));
  operations.begin("colours_first", "Permute3D").key("dims").begin_array().value(2).value(0).value(1).end_array();
  operations.end();
  return operations.take();
}

Result<std::string> patch_processor(const ProcessorSettings& settings, const PatchSizes& sizes) {
  JsonView root = settings.root();
  if (!root.is_valid()) return cannot("the model has no preprocessor_config.json");
  auto limit = [&](std::string_view key, std::string_view older, int64_t otherwise) {
    if (auto number = root.find(older).as_integer()) return *number;
    return root.find("size").find(key).as_integer().value_or(otherwise);
  };
  int64_t smallest = limit("shortest_edge", "min_pixels", 56 * 56);
  int64_t largest = limit("longest_edge", "max_pixels", int64_t{28} * 28 * 1280);
  ARGOSY_TRY(std::string_view filter, filter_name(root.find("resample"), "CUBIC"));
  Operations operations("processor", "transforms");
  decode(operations);
  JsonWriter& json = operations.begin("resize", "Resize");
  json.key("smart_resize").value(int64_t{1});
  json.key("min_pixels").value(smallest);
  json.key("max_pixels").value(largest);
  json.key("patch_size").value(sizes.patch);
  json.key("merge_size").value(sizes.merge);
  json.key("interpolation").value(filter);
  operations.end();
  ARGOSY_TRY_STATUS(scale_colours(operations, root));
  JsonWriter& patches = operations.begin("patches", "PatchImage");
  patches.key("patch_size").value(sizes.patch);
  patches.key("temporal_patch_size").value(sizes.frames);
  patches.key("merge_size").value(sizes.merge);
  operations.end();
  return operations.take();
}

Result<std::string> spectrogram_processor(const ProcessorSettings& settings, int64_t mel_bins) {
  JsonView root = settings.root();
  auto number = [&](std::string_view key, int64_t otherwise) {
    return root.is_valid() ? root.find(key).as_integer().value_or(otherwise) : otherwise;
  };
  if (number("sampling_rate", 16000) != 16000) return cannot("sounds are not sampled 16000 times a second");
  int64_t window = number("n_fft", 400), step = number("hop_length", 160);
  Operations operations("feature_extraction", "sequence");
  operations.plain("audio_decoder", "AudioDecoder");
  JsonWriter& transform = operations.begin("spectrum", "STFTNorm");
  transform.key("n_fft").value(window);
  transform.key("frame_length").value(window);
  transform.key("hop_length").value(step);
  operations.end();
  JsonWriter& mel = operations.begin("log_mel_spectrogram", "LogMelSpectrum");
  mel.key("chunk_size").value(number("chunk_length", 30));
  mel.key("hop_length").value(step);
  mel.key("n_fft").value(window);
  mel.key("n_mel").value(mel_bins);
  operations.end();
  return operations.take();
}

std::string processor_usage(std::string_view file, std::string_view prompt, std::string_view call, int64_t max_length) {
  return format(R"(In this folder, with a file `{}`:

```python
import onnxruntime_genai as og

model = og.Model(".")
processor = model.create_multimodal_processor()
prompt = "{}"
inputs = {}
params = og.GeneratorParams(model)
params.set_search_options(max_length={})
generator = og.Generator(model, params)
generator.set_inputs(inputs)
while not generator.is_done():
    generator.generate_next_token()
print(processor.decode(generator.get_sequence(0)))
```
)",
                file, prompt, call, max_length);
}

}  // namespace argosy::engines::genai
