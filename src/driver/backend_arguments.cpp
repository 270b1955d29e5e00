#include "driver/backend_arguments.h"

#include <charconv>
#include <string_view>

#include "backends/executorch/quantize.h"
#include "backends/onnx/quantize.h"
#include "base/text.h"
#include "driver/variants.h"
#include "engines/device.h"

namespace argosy {
namespace {

using executorch::LinearEncoding;

constexpr std::string_view kObserveFlag = "--observe-values";

void add_quantization(std::vector<std::string>& arguments, const onnx::Quantization& how) {
  if (!how.is_wanted()) return;
  arguments.push_back(format("--quantize={}", onnx::quantization_text(how)));
  if (how.is_dynamic) return;
  arguments.push_back(format("--quantize-block={}", onnx::block_of(how)));
  arguments.push_back(format("--quantize-method={}", onnx::name_of(how.method)));
  if (!how.is_symmetric) arguments.emplace_back("--quantize-zero-points");
  if (how.accuracy_level != onnx::kDevicesAccuracy)
    arguments.push_back(format("--accuracy-level={}", how.accuracy_level));
}

void add_linear(std::vector<std::string>& arguments, std::string_view flag, const executorch::LinearQuantization& how) {
  if (how.encoding == LinearEncoding::kFloat) return;
  arguments.push_back(format("{}={}", flag, executorch::name_of(how.encoding)));
  if (how.group_size >= 0) arguments.push_back(format("{}-group-size={}", flag, how.group_size));
}

/// One argument that is being read.
struct GivenArgument {
  std::string_view name, value;

  explicit GivenArgument(std::string_view text) : name(text.substr(0, text.find('='))) {
    if (name.size() < text.size()) value = text.substr(name.size() + 1);
  }

  tl::unexpected<Error> refuse(std::string_view wanted) const {
    return fail(ErrorCode::kInvalidInput, format("{} is {}, which is not {}", name, quoted(value), wanted));
  }

  template <class Number>
  Status read_number(Number& number, Number least, Number most) const {
    Number read{};
    const char* end = value.data() + value.size();
    auto [rest, error] = std::from_chars(value.data(), end, read);
    if (error != std::errc() || rest != end || read < least || read > most)
      return refuse(format("a number from {} to {}", least, most));
    number = read;
    return {};
  }

  template <class Value>
  Status read_name(Value& read, const std::map<std::string, Value>& names) const {
    if (auto found = names.find(std::string(value)); found != names.end()) {
      read = found->second;
      return {};
    }
    std::vector<std::string> known;
    for (const auto& [each, meaning] : names) known.push_back(each);
    return refuse(format("one of {}", join(known, ", ")));
  }

  template <class Value>
  Status read_switch(Value& option, Value on) const {
    if (!value.empty())
      return fail(ErrorCode::kInvalidInput, format("{} takes no value, and has {}", name, quoted(value)));
    option = on;
    return {};
  }

  Status read_text(std::string& text) const {
    text = value;
    return {};
  }
};

tl::unexpected<Error> no_option(const GivenArgument& argument, std::string_view backend) {
  return fail(ErrorCode::kInvalidInput, format("{} is no option of {}", quoted(argument.name), backend));
}

/// A group size, as the command takes it.
Status read_group_size(const GivenArgument& argument, int64_t& size) {
  return argument.read_number<int64_t>(size, 0, int64_t{1} << 20);
}

Status read_onnx_argument(const GivenArgument& given, OnnxOptions& options) {
  onnx::LoweringOptions& lowering = options.lowering;
  onnx::Quantization& how = lowering.quantization;
  if (given.name == "--opset") return given.read_number(lowering.opset, onnx::kMinOpset, onnx::kMaxOpset);
  if (given.name == "--optimize") return given.read_name(lowering.optimize, names_of_optimizations());
  if (given.name == "--weights") return given.read_name(options.weights, names_of_weights_modes());
  if (given.name == "--quantize") return onnx::read_quantization(given.value, how);
  if (given.name == "--quantize-block") return given.read_number<int64_t>(how.block, 1, INT64_MAX);
  if (given.name == "--quantize-method") return given.read_name(how.method, names_of_quantize_methods());
  if (given.name == "--quantize-zero-points") return given.read_switch(how.is_symmetric, false);
  if (given.name == "--accuracy-level") return given.read_number(how.accuracy_level, 0, 4);
  if (given.name == "--device") return given.read_text(options.device);
  if (given.name == "--for") return given.read_text(options.engine);
  if (given.name == kMixedFlag) return given.read_switch(lowering.half, onnx::HalfMode::kMixed);
  if (given.name == kObserveFlag) return given.read_switch(lowering.half, onnx::HalfMode::kObserved);
  return no_option(given, "ONNX exports");
}

Status read_executorch_argument(const GivenArgument& given, ExecutorchOptions& options) {
  executorch::LoweringOptions& lowering = options.lowering;
  executorch::TaskOptions& task = options.task;
  if (given.name == "--recipe") return given.read_name(lowering.recipe, names_of_recipes());
  if (given.name == "--max-seq-len") return given.read_number<int64_t>(task.max_seq_len, 1, 1 << 24);
  if (given.name == "--no-custom-sdpa") return given.read_switch(task.custom_sdpa, false);
  if (given.name == "--no-custom-kv-cache") return given.read_switch(task.custom_kv_cache, false);
  if (given.name == "--all-logits") return given.read_switch(task.all_logits, true);
  if (given.name == "--disable-dynamic-shapes") return given.read_switch(task.dynamic_shapes, false);
  if (given.name == "--qlinear") return given.read_name(lowering.linear.encoding, names_of_linear_encodings());
  if (given.name == "--qlinear-group-size") return read_group_size(given, lowering.linear.group_size);
  if (given.name == "--qlinear-encoder")
    return given.read_name(lowering.encoder_linear.encoding, names_of_linear_encodings());
  if (given.name == "--qlinear-encoder-group-size") return read_group_size(given, lowering.encoder_linear.group_size);
  if (given.name == "--qembedding") return given.read_name(lowering.embedding.encoding, names_of_embedding_encodings());
  if (given.name == "--qembedding-group-size") return read_group_size(given, lowering.embedding.group_size);
  if (given.name == "--qconv") return given.read_name(lowering.convolution, names_of_convolution_encodings());
  if (given.name == "--task") return given.read_text(task.task);
  if (given.name == "--shape") return given.read_text(options.shape);
  if (given.name == "--ptd") return given.read_switch(options.data, executorch::DataPlace::kBeside);
  return no_option(given, "ExecuTorch exports");
}

}  // namespace

std::map<std::string, onnx::WeightsMode> names_of_weights_modes() {
  return {{"copy", onnx::WeightsMode::kCopy}, {"link", onnx::WeightsMode::kLink}, {"embed", onnx::WeightsMode::kEmbed}};
}

std::map<std::string, onnx::Optimize> names_of_optimizations() {
  return {{"off", onnx::Optimize::kOff}, {"safe", onnx::Optimize::kSafe}, {"engine", onnx::Optimize::kEngine}};
}

std::map<std::string, QuantizeMethod> names_of_quantize_methods() {
  return {
      {"default", QuantizeMethod::kLargest}, {"rtn", QuantizeMethod::kNearest}, {"k_quant", QuantizeMethod::kWeighted}};
}

std::map<std::string, executorch::Recipe> names_of_recipes() {
  return {{"portable", executorch::Recipe::kPortable}, {"xnnpack", executorch::Recipe::kXnnpack}};
}

std::map<std::string, LinearEncoding> names_of_linear_encodings() {
  return {{"8da4w", LinearEncoding::k8da4w},
          {"8da8w", LinearEncoding::k8da8w},
          {"4w", LinearEncoding::k4w},
          {"8w", LinearEncoding::k8w},
          {"8a8w", LinearEncoding::k8a8w}};
}

std::map<std::string, executorch::EmbeddingEncoding> names_of_embedding_encodings() {
  return {{"8w", executorch::EmbeddingEncoding::k8w}, {"4w", executorch::EmbeddingEncoding::k4w}};
}

std::map<std::string, executorch::ConvolutionEncoding> names_of_convolution_encodings() {
  return {{"8a8w", executorch::ConvolutionEncoding::k8a8w}};
}

std::vector<std::string> onnx_arguments(const OnnxOptions& options) {
  std::vector<std::string> arguments;
  if (options.lowering.opset != onnx::kDefaultOpset) arguments.push_back(format("--opset={}", options.lowering.opset));
  if (options.lowering.optimize == onnx::Optimize::kOff) arguments.emplace_back("--optimize=off");
  if (options.lowering.optimize == onnx::Optimize::kSafe) arguments.emplace_back("--optimize=safe");
  if (options.device != engines::kUsualDevice) arguments.push_back(format("--device={}", options.device));
  if (options.weights == onnx::WeightsMode::kLink) arguments.emplace_back("--weights=link");
  if (options.weights == onnx::WeightsMode::kEmbed) arguments.emplace_back("--weights=embed");
  if (options.lowering.half == onnx::HalfMode::kMixed) arguments.emplace_back(kMixedFlag);
  if (options.lowering.half == onnx::HalfMode::kObserved) arguments.emplace_back(kObserveFlag);
  add_quantization(arguments, options.lowering.quantization);
  return arguments;
}

std::vector<std::string> executorch_arguments(const ExecutorchOptions& options) {
  std::vector<std::string> arguments;
  const executorch::TaskOptions& task = options.task;
  if (options.lowering.recipe != executorch::Recipe::kXnnpack) arguments.emplace_back("--recipe=portable");
  if (!task.task.empty()) arguments.push_back(format("--task={}", task.task));
  if (task.max_seq_len != 0) arguments.push_back(format("--max-seq-len={}", task.max_seq_len));
  if (!task.custom_sdpa) arguments.emplace_back("--no-custom-sdpa");
  if (!task.custom_kv_cache) arguments.emplace_back("--no-custom-kv-cache");
  if (task.all_logits) arguments.emplace_back("--all-logits");
  if (!task.dynamic_shapes) arguments.emplace_back("--disable-dynamic-shapes");
  add_linear(arguments, "--qlinear", options.lowering.linear);
  add_linear(arguments, "--qlinear-encoder", options.lowering.encoder_linear);
  if (options.lowering.convolution == executorch::ConvolutionEncoding::k8a8w) arguments.emplace_back("--qconv=8a8w");
  const executorch::EmbeddingQuantization& embedding = options.lowering.embedding;
  if (embedding.encoding != executorch::EmbeddingEncoding::kFloat) {
    arguments.emplace_back(embedding.encoding == executorch::EmbeddingEncoding::k8w ? "--qembedding=8w"
                                                                                    : "--qembedding=4w");
    if (embedding.group_size != 0) arguments.push_back(format("--qembedding-group-size={}", embedding.group_size));
  }
  if (options.data == executorch::DataPlace::kBeside) arguments.emplace_back("--ptd");
  if (!options.shape.empty()) arguments.push_back(format("--shape={}", options.shape));
  return arguments;
}

Status read_onnx_arguments(std::span<const std::string> arguments, OnnxOptions& options) {
  for (const std::string& each : arguments) ARGOSY_TRY_STATUS(read_onnx_argument(GivenArgument(each), options));
  return onnx::check_quantization(options.lowering.quantization);
}

Status read_executorch_arguments(std::span<const std::string> arguments, ExecutorchOptions& options) {
  for (const std::string& each : arguments) ARGOSY_TRY_STATUS(read_executorch_argument(GivenArgument(each), options));
  return {};
}

}  // namespace argosy
