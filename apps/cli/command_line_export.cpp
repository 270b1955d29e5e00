#include <algorithm>
#include <map>

#include "backends/onnx/quantize.h"
#include "base/text.h"
#include "command_line_parts.h"
#include "driver/backend_arguments.h"
#include "driver/stored_dtype.h"
#include "driver/variants.h"
#include "engines/device.h"
#include "engines/engine.h"

namespace argosy::cli {

std::string not_one_of(const std::string& text, const std::vector<std::string>& names) {
  return format("{} is not one of {}", quoted(text), join(names, ", "));
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  return {[names](std::string& text) -> std::string {
            return std::ranges::find(names, text) == names.end() ? not_one_of(text, names) : "";
          },
          "", name_of_values(names)};
}

std::string name_of_values(const std::vector<std::string>& names) {
  return std::string(kValuesName) + join(names, " ");
}

CLI::Validator maybe_one_of(const std::vector<std::string>& names) {
  return {[](std::string&) { return std::string(); }, "", name_of_values(names)};
}

void add_model(CLI::App& command, ModelOptions& options, const std::string& what, const std::string& name) {
  command.add_option(name, options.model, what)->required();
  command.add_option("--revision", options.revision, "Of ORG/NAME: a branch, a tag or a commit (default: main)");
  command.add_flag("--offline", options.offline, "Download nothing: the Hub's cache has it, or it is an error");
  command.add_flag("--trust-remote-code", options.trust_remote_code, "Run code that comes with the model");
}

namespace {

/// "NAME=DIR"; the name is that of a file, too.
void add_adapter_apart(const std::string& text, std::map<std::string, std::string>& adapters) {
  constexpr std::string_view kFlag = "--adapter-apart";
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const bool is_name = equals != std::string::npos && !name.empty() && name.size() <= 64 && name[0] != '.' &&
                       name[0] != '-' && name.find_first_not_of(kLetters) == std::string::npos;
  if (!is_name || equals + 1 == text.size()) {
    throw CLI::ValidationError(std::string(kFlag),
                               format("{} is not NAME=DIR; a name has letters, digits, _, - and .", quoted(text)));
  }
  if (!adapters.emplace(name, text.substr(equals + 1)).second)
    throw CLI::ValidationError(std::string(kFlag), format("two adapters are called {}", quoted(name)));
}

}  // namespace

void add_adapters_apart(CLI::App& command, std::map<std::string, std::string>& adapters, const std::string& what) {
  auto read = [&adapters](const std::vector<std::string>& all) {
    for (const std::string& each : all) add_adapter_apart(each, adapters);
  };
  command.add_option_function<std::vector<std::string>>("--adapter-apart", read, what)->allow_extra_args(false);
}

void add_registry(CLI::App& command, RegistryOptions& options) {
  command.add_option("--registry", options.location,
                     "Where others share captures, asked before Python: a folder or http://… (default: "
                     "ARGOSY_REGISTRY's)");
  command
      .add_option("--registry-key", options.keys,
                  "A public key whose signatures there are trusted (default: those in registry-keys.txt); again for "
                  "another")
      ->allow_extra_args(false);
}

void add_inputs(CLI::App& command, std::vector<std::string>& files) {
  command
      .add_option("--inputs", files,
                  "Sample inputs of forward by their names (.safetensors, .npz), which becomes one graph; again for "
                  "other sizes, which then vary")
      ->allow_extra_args(false);
}

void add_trace(CLI::App& command, std::string& trace) {
  command
      .add_option(
          "--trace", trace,
          "How graphs are captured: stamped (default): of layers that are alike few are traced and the others are "
          "copies; or whole")
      ->check(one_of({"stamped", "whole"}));
}

void add_dtype(CLI::App* command, std::string& dtype) {
  command->add_option("--dtype", dtype, "auto (default: the configuration's), float32, float16 or bfloat16; fp32 …")
      ->transform(CLI::Transformer(names_of_dtypes()).description(""))
      ->check(one_of({"auto", "float32", "float16", "bfloat16"}));
}

namespace {

/// One of these, or a name that a package may have registered.
CLI::Validator one_of_or_registered(const std::vector<std::string>& names) {
  return {[names](std::string& text) -> std::string {
            const bool is_known = std::ranges::find(names, text) != names.end();
            return is_known || is_registered_name(text) ? "" : not_one_of(text, names);
          },
          "", name_of_values(names)};
}

}  // namespace

std::vector<std::string> names_of_engines(std::string_view backend) {
  std::vector<std::string> names;
  for (const engines::Engine& engine : engines::all_engines()) {
    if (backend.empty() || engine.backend == backend) names.emplace_back(engine.name);
  }
  return names;
}

void add_recipe(CLI::App& command, ExecutorchOptions& options) {
  command
      .add_option("--recipe", options.lowering.recipe,
                  "For ExecuTorch: xnnpack (default: wherever it can) or portable (ExecuTorch's own kernels alone)")
      ->transform(one_of(names_of_recipes()));
}

namespace {

/// A dtype, or variants.
void add_variants(CLI::App* command, ExportOptions& options) {
  std::vector<std::string> usual = {"auto", "bf16", "all"};
  for (const Variant& each : all_variants()) usual.emplace_back(each.name);
  command
      ->add_option_function<std::string>(
          "--dtype",
          [&options, names = names_of_dtypes()](const std::string& text) {
            if (auto found = names.find(text); found != names.end()) {
              options.dtype = found->second;
              return;
            }
            auto variants = read_variants(text);
            if (!variants)
              throw CLI::ValidationError("--dtype", format("{}; {}", variants.error().message, variants.error().hint));
            options.variants = *std::move(variants);
          },
          "auto (default: the configuration's), fp32, fp16 or bf16; or variants, such as fp32,q4: of fp32, fp16, q4, "
          "q4f16, q8, mixed16 (fp16 where that is safe), int8 and uint8 (products in integers), bnb4 (nf4), or all: "
          "the first "
          "five")
      ->check(maybe_one_of(usual));
}

/// CLI11 takes "-5" for a large number. An empty text: it is one.
std::string is_size(const std::string& text) {
  bool is_positive = text.find_first_of("123456789") != std::string::npos && text.find('-') == std::string::npos;
  return is_positive ? "" : format("{} is not a size, such as 256MB", text);
}

/// What every export has.
CLI::App* add_backend(CLI::App& parent, ExportOptions& options, const std::string& name, const std::string& what,
                      const std::string& output, bool has_variants = false) {
  CLI::App* command = parent.add_subcommand(name, what);
  command->callback([&options, name] { options.backend = name; });
  add_model(*command, options.source, "The model's folder, or ORG/NAME of the Hub");
  command->add_option("--task", options.task, "Such as text-generation; by default what the model's class is for");
  command->add_option("--shape", options.shape, "Narrows dims: batch=1,sequence=1..2048");
  add_inputs(*command, options.inputs);
  command->add_flag("--prefill", options.prefill, "Also a program for prompts without a past");
  has_variants ? add_variants(command, options) : add_dtype(command, options.dtype);
  command->add_option("--adapter", options.adapter, "The folder of a LoRA adapter of PEFT, which is merged");
  command->add_option("--capture", options.capture, "The graphs (default: the cache's, else by Python)");
  command->add_option("--plan", options.plan,
                      "How weights come from the checkpoint (default: the cache's, else by Python)");
  command->add_option("--memory", options.memory_bytes, "The most memory to use, such as 256MB")
      ->transform(CLI::AsSizeValue(true).description(""))
      ->transform(CLI::Validator(is_size, ""));  // the last one is the first that is run
  command->add_option("--threads", options.threads, "Threads that work at once (default: as cores, up to 4)")
      ->check(CLI::Range(1, 256).description(""));
  const std::map<std::string, CheckMode> modes = {
      {"twin", CheckMode::kTwin}, {"full", CheckMode::kFull}, {"off", CheckMode::kOff}};
  command
      ->add_option("--check", options.check,
                   "Compare with the model: twin (default: a small one of its kind), full (its own weights) or off")
      ->transform(one_of(modes));
  command->add_option("--text", options.given.text,
                      "With --check full: a file of text that model and export both read");
  command->add_option("--audio", options.given.audio, "With --check full: a WAV file that both hear");
  command
      ->add_option("--min-agreement", options.least.agreement,
                   "With --check full: fail if fewer best tokens or classes, of 1, agree")
      ->check(CLI::Range(0.0, 1.0).description(""));
  command
      ->add_option("--min-cosine", options.least.cosine,
                   "With --check full, of models that generate nothing: fail if outputs are less near the model's")
      ->check(CLI::Range(0.0, 1.0).description(""));
  command->add_option("--max-kl", options.least.divergence, "With --check full: fail if the KL divergence is larger")
      ->check(CLI::NonNegativeNumber.description(""));
  add_trace(*command, options.trace);
  command->add_flag("--recapture", options.recapture, "Capture and plan anew, whatever the cache has");
  add_registry(*command, options.registry);
  command->add_flag("--dry-run", options.dry_run, "Say what would be written and what it takes, and write nothing");
  command->add_option("--dump-ir", options.watch.dump_dir, "For developers: write the program after each pass there");
  command->add_option("--after", options.watch.dump_after, "With --dump-ir: only after these passes, by commas")
      ->delimiter(',');
  command->add_flag("--verify-each", options.watch.verify_each, "For developers: verify the program after each pass");
  command->add_option("--repro-dir", options.watch.repro_dir,
                      "Where a failing pass leaves its reproducer (default: of bugs alone, OUTPUT.repro)");
  command->add_option("output,-o,--output,--output-dir", options.output, output);
  return command;
}

void add_onnx(CLI::App& parent, ExportOptions& options) {
  CLI::App* command =
      add_backend(parent, options, "onnx", "Models for ONNX Runtime",
                  "NAME.onnx: one model; else a folder with one a component (default: MODEL-onnx)", true);
  OnnxOptions& onnx = options.backend_options.onnx;
  command->add_option("--opset", onnx.lowering.opset, "Version of ONNX's ops, 18 to 24 (default: 22)")
      ->check(CLI::Range(onnx::kMinOpset, onnx::kMaxOpset).description(""));
  command
      ->add_option("--weights", onnx.weights,
                   "copy (default: one data file beside the models), link (to the checkpoint's own files, on the same "
                   "file system) or embed (in the models, up to 2 GB)")
      ->transform(one_of(names_of_weights_modes()));
  command
      ->add_option("--optimize", onnx.lowering.optimize,
                   "off, safe (ops of ONNX only), or engine (default: also what the engine of --for has of its own)")
      ->transform(one_of(names_of_optimizations()));
  onnx::Quantization& quantization = onnx.lowering.quantization;
  command->add_option_function<std::string>(
      "--quantize",
      [&quantization](const std::string& text) {
        if (Status status = onnx::read_quantization(text, quantization); !status)
          throw CLI::ValidationError("--quantize", format("{}; {}", status.error().message, status.error().hint));
      },
      "Store weights of linear layers in few bits: int4, int8, nf4, dynamic-int8 or -uint8 (products in integers), "
      "keep (as a quantised checkpoint has them), or a scheme of an installed package; then exceptions, as in "
      "int4,lm_head=int8,embedding=int4");
  command
      ->add_option("--quantize-block", quantization.block,
                   "Weights that share a scale: 16 to 256 (default: 32, of nf4 64)")
      ->check(CLI::PositiveNumber.description(""));
  command->add_option("--quantize-method", quantization.method, "As ONNX Runtime has them: default, rtn or k_quant")
      ->transform(one_of(names_of_quantize_methods()));
  command->add_flag("--quantize-zero-points{false}", quantization.is_symmetric,
                    "Blocks of weights need not be centred at zero");
  command
      ->add_option("--accuracy-level", quantization.accuracy_level,
                   "Of products with such weights: 1 computes in float, 4 with activations in 8 bits as well (default: "
                   "4 where the device is faster with it)")
      ->check(CLI::Range(0, 4).description(""));
  std::vector<std::string> device_names;
  for (const engines::Device& device : engines::all_devices()) device_names.emplace_back(device.name);
  command
      ->add_option(
          "--device", onnx.device,
          format("What ONNX Runtime runs the graphs on: {} (default: cpu); with --for genai it decides which ops "
                 "of the engine's own they have",
                 join(device_names, ", ")))
      ->check(one_of(device_names));
  onnx::HalfMode& half = onnx.lowering.half;
  command->add_flag_callback(
      std::string(kMixedFlag), [&half] { half = onnx::HalfMode::kMixed; },
      "Of float32: compute in float16 where that is safe; what --dtype mixed16 is");
  command->add_option(
      "--calibrate", options.calibrate,
      "With mixed16: a text that the model reads first, so that what becomes large stays float32; takes "
      "the model's memory in float32, and its room on the disk for a time");
  command->add_option("--seen-values", options.seen_values,
                      "With mixed16: the same from a file that python -m argosy.check.seen wrote");
  command->add_flag_callback(
      "--observe-values", [&half] { half = onnx::HalfMode::kObserved; },
      "For python -m argosy.check.seen: outputs that tell how large values are");
  command->add_flag("--add", options.adds,
                    "Add the variants of --dtype to the bundle that is there; files of its others stay as they are");
  add_adapters_apart(*command, options.adapters_apart,
                     "NAME=DIR: a LoRA adapter of PEFT that is not merged but can be switched on by its name, with "
                     "--for genai; again for another");
  std::vector<std::string> engine_names = names_of_engines("onnx");
  command
      ->add_option("--for,--engine", onnx.engine,
                   format("What the folder is for: {} (default: plain), or an engine of an installed package",
                          join(engine_names, ", ")))
      ->check(one_of_or_registered(engine_names));
}

template <class Quantization>
void add_quantization(CLI::App& command, const std::string& flag, const std::string& what, Quantization& options,
                      const std::map<std::string, decltype(Quantization::encoding)>& names) {
  std::vector<std::string> words;
  for (const auto& [name, encoding] : names) words.push_back(name);
  command.add_option(flag, options.encoding, format("Quantise {}: {}", what, join(words, ", ")))
      ->transform(one_of(names));
  command.add_option(flag + "-group-size", options.group_size, "Weights that share a scale (default: the encoding's)")
      ->check(CLI::Range(0, 1 << 20).description(""));
}

void add_executorch(CLI::App& parent, ExportOptions& options) {
  CLI::App* command =
      add_backend(parent, options, "executorch", "A program for ExecuTorch's runtime",
                  "NAME.pte: the program; else a folder with model.pte and what runners want (default: MODEL-pte)");
  ExecutorchOptions& wanted = options.backend_options.executorch;
  // What the program is for; which class is captured follows from the model.
  command->parse_complete_callback([&options, &wanted] { wanted.task.task = std::exchange(options.task, ""); });
  add_recipe(*command, wanted);
  command
      ->add_option("--max-seq-len", wanted.task.max_seq_len,
                   "Tokens that caches hold (default: the model's, up to 2048)")
      ->check(CLI::Range(1, 1 << 24).description(""));
  command->add_flag("--use-custom-sdpa,!--no-custom-sdpa", wanted.task.custom_sdpa,
                    "Attention by llama::custom_sdpa (default, of tasks that generate)");
  command->add_flag("--use-custom-kv-cache,!--no-custom-kv-cache", wanted.task.custom_kv_cache,
                    "Caches by llama::update_cache (default, of tasks that generate)");
  command->add_flag("--all-logits", wanted.task.all_logits, "Of text generation: of every token, not the last alone");
  command->add_flag("--disable-dynamic-shapes{false}", wanted.task.dynamic_shapes, "One token a call");
  const auto linear = names_of_linear_encodings();
  add_quantization(*command, "--qlinear", "linear layers", wanted.lowering.linear, linear);
  add_quantization(*command, "--qlinear-encoder", "linear layers of encoders", wanted.lowering.encoder_linear, linear);
  add_quantization(*command, "--qembedding", "embeddings", wanted.lowering.embedding, names_of_embedding_encodings());
  command->add_option("--qconv", wanted.lowering.convolution, "Quantise convolutions: 8a8w")
      ->transform(one_of(names_of_convolution_encodings()));
  command->add_option("--calibrate", options.calibrate,
                      "With 8a8w: what the model is called with first, to see between which values activations are: a "
                      "text, or its inputs (.safetensors); takes the model's memory in float32");
  command->add_option("--seen-values", options.seen_values,
                      "With 8a8w: the same from a file that python -m argosy.check.ranges wrote");
  // Of optimum-executorch, answered with what to use instead.
  command->add_option_function<std::string>(
      "--device",
      [](const std::string& device) {
        if (device != "cpu") throw CLI::ValidationError("--device", "programs are for the CPU; leave it out");
      },
      "cpu");
  command->add_option_function<std::string>(
      "--image-size",
      [](const std::string& size) {
        throw CLI::ValidationError(
            "--image-size", format("write --shape height={},width={}, for models that take other sizes", size, size));
      },
      "See --shape");
  command->add_flag_callback(
      "--ptd", [&wanted] { wanted.data = executorch::DataPlace::kBeside; }, "Weights in a file of their own, NAME.ptd");
}

}  // namespace

void add_export(CLI::App& app, ExportOptions& options) {
  CLI::App* command = app.add_subcommand("export", "Write a model for an engine");
  command->require_subcommand(1);
  add_onnx(*command, options);
  add_executorch(*command, options);
  add_backend(*command, options, "pt2", "A program that torch.export.load reads without transformers",
              "NAME.pt2: one archive; else a folder with one a component (default: MODEL-pt2)");
}

}  // namespace argosy::cli
