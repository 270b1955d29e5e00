// Graphs by themselves: versions, ops and element types that runtimes take, and dims that callers may choose.

#include <algorithm>
#include <array>
#include <set>

#include "engines/lint_rule.h"

namespace argosy::engines {
namespace {

/// What ONNX Runtime 1.31 takes, and the runtimes of transformers.js 4.3 (onnxruntime-node 1.30, onnxruntime-web 1.31)
/// with it: tried with models of each version.
constexpr int64_t kMaxIr = 13;
struct DomainLimit {
  std::string_view domain;
  int64_t max_version;
};
constexpr DomainLimit kDomains[] = {
    {"", 26}, {"ai.onnx.ml", 5}, {"ai.onnx.training", 1}, {"ai.onnx.preview.training", 1}, {"com.microsoft", 1},
};
/// Domains of onnxruntime-extensions, or of ops that the runtime itself makes.
constexpr std::string_view kOtherDomains[] = {"ai.onnx.contrib", "com.microsoft.extensions", "com.microsoft.nchwc",
                                              "com.ms.internal.nhwc"};

void check_ir(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (graph.model && graph.model->ir_version > kMaxIr)
      found.add(graph.file,
                format("its IR version is {}, the runtime takes up to {}", graph.model->ir_version, kMaxIr));
  }
}

std::string domain_name(std::string_view domain) { return domain.empty() ? "ai.onnx" : std::string(domain); }

void check_opset(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model) continue;
    for (const auto& [domain, version] : graph.model->opset_imports) {
      std::string_view wanted = domain == "ai.onnx" ? std::string_view() : std::string_view(domain);
      for (const DomainLimit& limit : kDomains) {
        if (limit.domain == wanted && version > limit.max_version)
          found.add(graph.file, format("it wants version {} of {}, the runtime takes up to {}", version,
                                       quoted(domain_name(wanted)), limit.max_version));
      }
    }
  }
}

void check_opset_missing(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model) continue;
    std::set<std::string> imported, lacking;
    for (const auto& [domain, version] : graph.model->opset_imports) imported.insert(domain == "ai.onnx" ? "" : domain);
    for (const OnnxOpCount& op : graph.model->ops) {
      if (!imported.contains(op.domain)) lacking.insert(domain_name(op.domain));
    }
    if (!lacking.empty())
      found.add(graph.file, format("it uses ops of {} without importing a version of them",
                                   some_of({lacking.begin(), lacking.end()})));
  }
}

void check_domain(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model) continue;
    std::set<std::string> unknown;
    for (const OnnxOpCount& op : graph.model->ops) {
      bool is_known =
          std::any_of(std::begin(kDomains), std::end(kDomains),
                      [&](const DomainLimit& limit) { return limit.domain == op.domain; }) ||
          std::find(std::begin(kOtherDomains), std::end(kOtherDomains), op.domain) != std::end(kOtherDomains);
      bool is_function = std::any_of(
          graph.model->functions.begin(), graph.model->functions.end(),
          [&](const OnnxFunction& function) { return function.domain == op.domain && function.name == op.op_type; });
      if (!is_known && !is_function) unknown.insert(format("{}::{}", op.domain, op.op_type));
    }
    if (!unknown.empty())
      found.add(graph.file,
                format("no runtime has {}, nor does it define them", some_of({unknown.begin(), unknown.end()})));
  }
}

/// ONNX Runtime's CPU has bf16 for ops that move or cast tensors, and for next to none that compute. A graph that casts
/// each of its bf16 weights computes in another type.
void check_bfloat16(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model) continue;
    auto weights = graph.weights.find("bf16");
    uint64_t count = weights == graph.weights.end() ? 0 : weights->second.count;
    auto is_bf16 = [](const OnnxValue& value) { return value.type == "bf16"; };
    bool at_border = std::any_of(graph.model->inputs.begin(), graph.model->inputs.end(), is_bf16) ||
                     std::any_of(graph.model->outputs.begin(), graph.model->outputs.end(), is_bf16);
    if (count > graph.count_of("", "Cast"))
      found.add(graph.file,
                format("{} of its weights are bf16, and it has {} casts", count, graph.count_of("", "Cast")));
    else if (at_border)
      found.add(graph.file, "it has bf16 inputs or outputs");
  }
}

struct Suffix {
  std::string_view suffix;
  std::array<std::string_view, 6> types;  // of weights, some of which must be there; ends at the first empty one
};
constexpr Suffix kSuffixes[] = {
    {"_fp16", {"f16"}},
    {"_int8", {"i8", "u8"}},
    {"_uint8", {"u8", "i8"}},
    {"_quantized", {"i8", "u8"}},
    {"_q4", {"u8", "i8", "u4", "i4"}},
    {"_q4f16", {"u8", "i8", "u4", "i4"}},
    {"_q2", {"u8", "i8", "u2", "i2"}},
    {"_q2f16", {"u8", "i8", "u2", "i2"}},
    {"_bnb4", {"u8", "i8", "u4", "i4"}},
};

void check_suffix(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    for (const Suffix& suffix : kSuffixes) {
      if (!graph.stem().ends_with(suffix.suffix) || graph.weights.empty()) continue;
      uint64_t expected = 0, f32 = 0;
      for (const auto& [type, weights] : graph.weights) {
        if (std::find(suffix.types.begin(), suffix.types.end(), type) != suffix.types.end()) expected += weights.bytes;
        if (type == "f32") f32 += weights.bytes;
      }
      bool is_as_said = suffix.suffix == "_fp16" ? expected >= f32 : expected > 0;
      if (!is_as_said)
        found.add(graph.file, format("its name ends in {}, but {} of its weights are f32 and {} of the type that says",
                                     quoted(suffix.suffix), format_bytes(f32), format_bytes(expected)));
    }
  }
}

constexpr std::string_view kTokenInputs[] = {
    "input_ids", "decoder_input_ids", "inputs_embeds", "decoder_inputs_embeds", "attention_mask", "token_type_ids"};

/// Inputs of tokens whose dim is a number, as "input_ids (1)".
std::vector<std::string> fixed_dims(const LintedGraph& graph, size_t dim) {
  std::vector<std::string> fixed;
  for (std::string_view name : kTokenInputs) {
    const OnnxValue* input = graph.input(name);
    if (input != nullptr && input->shape.size() > dim && input->shape.size() <= 3 && input->shape[dim].value)
      fixed.push_back(format("{} ({})", name, *input->shape[dim].value));
  }
  return fixed;
}

void check_fixed_batch(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (auto fixed = fixed_dims(graph, 0); !fixed.empty())
      found.add(graph.file, format("the batch size is fixed in {}", some_of(fixed)));
  }
}

void check_fixed_sequence(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (auto fixed = fixed_dims(graph, 1); !fixed.empty())
      found.add(graph.file, format("the number of tokens is fixed in {}", some_of(fixed)));
  }
}

constexpr LintRule kGraphsRules[] = {
    {"ir-too-new", kLintError,
     "an IR version that the runtime does not take; onnx 1.23 writes 14 unless told (transformers.js#105)",
     "write the graph with IR version 10", check_ir},
    {"opset-too-new", kLintError,
     "a version of an op set that the runtime does not take; onnx 1.23 writes 28 unless told", "export with --opset 22",
     check_opset},
    {"opset-not-imported", kLintError, "ops of a domain that the graph does not import",
     "write the graph again with the import", check_opset_missing},
    {"op-unknown", kLintError, "ops of a domain that no runtime has and the graph does not define",
     "export with ops of ONNX and com.microsoft, or load the library that has these", check_domain},
    {"bf16-on-cpu", kLintWarning, "bf16 arithmetic, for which ONNX Runtime's CPU provider has no kernels",
     "export with --dtype float16 or float32, unless it is for a GPU", check_bfloat16},
    {"dtype-not-as-named", kLintWarning, "a name such as model_fp16.onnx on weights of another type",
     "rename the file, or convert its weights", check_suffix},
    {"batch-fixed", kLintWarning, "a batch size that is a number in inputs of tokens (pytorch#140011)",
     "export with a dynamic batch", check_fixed_batch},
    {"sequence-fixed", kLintWarning, "a number of tokens that is fixed, so that other prompts fail (pytorch#150842)",
     "export with a dynamic sequence", check_fixed_sequence},
};

}  // namespace

std::span<const LintRule> lint_graph_rules() { return kGraphsRules; }

}  // namespace argosy::engines
