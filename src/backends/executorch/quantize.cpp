#include "backends/executorch/quantize.h"

#include <algorithm>
#include <map>
#include <set>

#include "backends/executorch/group_size.h"
#include "base/text.h"
#include "ir/rewriter.h"
#include "passes/added_weights.h"
#include "passes/aten_builder.h"
#include "passes/quantized_weights.h"
#include "tensor/quantize_source.h"

namespace argosy::executorch {

std::string_view name_of(LinearEncoding encoding) {
  switch (encoding) {
    case LinearEncoding::kFloat: return "float";
    case LinearEncoding::k8da4w: return "8da4w";
    case LinearEncoding::k8da8w: return "8da8w";
    case LinearEncoding::k4w: return "4w";
    case LinearEncoding::k8w: return "8w";
    case LinearEncoding::k8a8w: return "8a8w";
  }
  return "";
}

const LinearQuantization& linear_of(const LoweringOptions& options, const Component& component) {
  return is_encoder(component) ? options.encoder_linear : options.linear;
}

bool is_encoder(const Component& component) {
  return component.name.find("encode") != std::string::npos || component.name.find("vision") != std::string::npos ||
         component.name.find("audio") != std::string::npos;
}

namespace {

constexpr std::string_view kEmbeddingByte =
    "quantized_decomposed::embedding_byte(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
    "weight_quant_min, int weight_quant_max, Tensor indices) -> Tensor";
constexpr std::string_view kEmbeddingNibbles =
    "quantized_decomposed::embedding_4bit(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
    "weight_quant_min, int weight_quant_max, Tensor indices) -> Tensor";
constexpr std::string_view kEmbeddingByteTyped =
    "quantized_decomposed::embedding_byte.dtype(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
    "weight_quant_min, int weight_quant_max, Tensor indices, *, ScalarType? dtype=None) -> Tensor";
constexpr std::string_view kEmbeddingNibblesTyped =
    "quantized_decomposed::embedding_4bit.dtype(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
    "weight_quant_min, int weight_quant_max, Tensor indices, *, ScalarType? dtype=None) -> Tensor";

int64_t group_of(const LinearQuantization& how) {
  return how.group_size >= 0 ? how.group_size : how.encoding == LinearEncoding::k8da4w ? kGroupUnit : 0;
}

/// Whether this pass is for it; quantize-layers is for the other one.
bool stores_weights(const LinearQuantization& how) {
  return how.encoding != LinearEncoding::kFloat && how.encoding != LinearEncoding::k8a8w;
}

bool is_nibbles(LinearEncoding encoding) {
  return encoding == LinearEncoding::k8da4w || encoding == LinearEncoding::k4w;
}

/// What became of the weights of one kind, by their names.
struct Tally {
  std::set<std::string> stored, left;
  std::set<int64_t> widths;  // of rows of those left

  Status check(std::string_view flag, std::string_view what, int64_t group_size, Diagnostics& diagnostics) const {
    if (stored.empty() && left.empty()) {
      return fail(ErrorCode::kInvalidInput, format("{} has nothing to do: the model has no {}", flag, what),
                  "leave it out");
    }
    if (left.empty()) return {};
    std::vector<std::string> rows;
    for (int64_t width : widths) rows.push_back(format("{}", width));
    std::string why = group_size > 0 ? format("rows of {} are not made of groups of {}", join(rows, ", "), group_size)
                                     : format("rows of {} are no pairs of values", join(rows, ", "));
    if (stored.empty()) {
      std::string asked = group_size > 0 ? format("{}-group-size {}", flag, group_size) : std::string(flag);
      return fail(ErrorCode::kInvalidInput, format("{} fits none of the {} {}: {}", asked, left.size(), what, why),
                  group_size > 0 ? group_sizes_for(widths) : "use an encoding of 8 bits");
    }
    diagnostics.notes.push_back(
        format("{} of {} {} stay as they are: {}", left.size(), left.size() + stored.size(), what, why));
    return {};
  }
};

/// Values and scales in the program's table.
struct Stored {
  WeightId values, scales;
};

class Quantizer {
 public:
  Quantizer(Program& program, const LoweringOptions& options, Diagnostics& diagnostics)
      : program_(program), options_(options), diagnostics_(diagnostics) {}

  Status component(Component& component) {
    const LinearQuantization& linear = linear_of(options_, component);
    Tally& tally = is_encoder(component) ? encoder_linear_ : linear_;
    for (Graph& graph : component.graphs) {
      Rewriter rewriter(graph);
      AddedWeights bound;
      for (NodeId node : graph.nodes()) {
        std::string_view op = program_.schemas[graph[node].op].name;
        RuleContext context{program_, component, rewriter, node};
        rewriter.insert_before(node);
        if (op == "aten.linear.default" && stores_weights(linear)) {
          ARGOSY_TRY_STATUS(or_refused([&] { return this->linear(context, linear, bound, tally); }));
        } else if (op == "aten.embedding.default" && options_.embedding.encoding != EmbeddingEncoding::kFloat) {
          ARGOSY_TRY_STATUS(or_refused([&] { return embedding(context, bound); }));
        }
      }
      has_changed_ = has_changed_ || rewriter.has_changed();
    }
    return {};
  }

  bool has_changed() const { return has_changed_; }

  /// An encoding that fits no weight is an error; one that fits only some gives a note.
  Status check_all() const {
    auto linear = [&](const LinearQuantization& how, std::string_view flag, std::string_view what, const Tally& tally) {
      return stores_weights(how) ? tally.check(flag, what, group_of(how), diagnostics_) : Status();
    };
    ARGOSY_TRY_STATUS(linear(options_.linear, "--qlinear", "linear layers", linear_));
    ARGOSY_TRY_STATUS(
        linear(options_.encoder_linear, "--qlinear-encoder", "linear layers of encoders", encoder_linear_));
    if (options_.embedding.encoding == EmbeddingEncoding::kFloat) return {};
    return embedding_.check("--qembedding", "embeddings", options_.embedding.group_size, diagnostics_);
  }

 private:
  /// The weight's place in the table, if it is one that can be stored so.
  std::optional<WeightId> weight_of(const Graph& graph, const Argument& argument) const {
    const auto* value = argument.get_if<ValueId>();
    if (value == nullptr || !graph[*value].weight.is_valid()) return std::nullopt;
    WeightId id = graph[*value].weight;
    const Weight& weight = program_[id];
    bool is_float = weight.dtype == DType::kF32 || weight.dtype == DType::kF16 || weight.dtype == DType::kBF16;
    if (!is_float || weight.shape.size() != 2) return std::nullopt;
    return id;
  }

  /// For reports, and for whoever compares the file with the model.
  void note(WeightId id, std::string_view use, std::string_view encoding, int64_t group) {
    note_quantized(program_, {program_[id].name, std::string(use), std::string(encoding), group});
  }

  Result<Stored> stored(WeightId id, std::string_view encoding, int64_t block, QuantizedForm form, DType scales) {
    auto [found, is_new] = stored_.try_emplace(format("{} {} {}", id.index, encoding, block));
    if (!is_new) return found->second;
    const Weight weight = program_[id];
    const int bits = form == QuantizedForm::kI8 ? 8 : 4;
    ARGOSY_TRY(SourceGroupPtr group,
               quantized_blocks(weight.source, {{QuantizeMethod::kFitted, bits, true, scales}, block, form}));
    found->second.values = add_weight(program_, format("{}.{}", weight.name, encoding), group_output(group, 0));
    found->second.scales = add_weight(program_, format("{}.{}.scales", weight.name, encoding), group_output(group, 1));
    return found->second;
  }

  Status linear(RuleContext& context, const LinearQuantization& how, AddedWeights& bound, Tally& tally) {
    AtenBuilder f(context);
    std::optional<WeightId> weight = weight_of(f.graph(), f.argument("weight"));
    if (!weight) return {};
    int64_t width = program_[*weight].shape[1];
    bool has_groups = how.group_size != 0 && how.encoding == LinearEncoding::k8da4w;
    int64_t block = has_groups ? group_of(how) : width;
    if (has_groups ? !fits_groups(width, block) : is_nibbles(how.encoding) && width % 2 != 0) {
      tally.left.insert(program_[*weight].name);
      tally.widths.insert(width);
      return {};
    }
    const bool rounds_rows = how.encoding == LinearEncoding::k8da4w || how.encoding == LinearEncoding::k8da8w;
    if (DType dtype = f.result().dtype; dtype != DType::kF32 && !rounds_rows) {
      return fail(ErrorCode::kUnsupportedFeature,
                  format("{} is for arithmetic in float32, and {} is used in {}", name_of(how.encoding),
                         quoted(program_[*weight].name), to_text(dtype)),
                  "add --dtype fp32, or use 8da8w or 8da4w");
    }
    tally.stored.insert(program_[*weight].name);
    DType scale_type = has_groups ? DType::kBF16 : DType::kF32;
    QuantizedForm form = is_nibbles(how.encoding) ? QuantizedForm::kNibbles : QuantizedForm::kI8;
    ARGOSY_TRY(Stored data, stored(*weight, name_of(how.encoding), block, form, scale_type));
    note(*weight, "linear", name_of(how.encoding), has_groups ? block : 0);
    ValueId values = bound.value(context, data.values), scales = bound.value(context, data.scales);
    f.become(kQuantizedLinear, {{"input", f.argument("input")},
                                {"weight", values},
                                {"scales", scales},
                                {"bias", f.argument("bias")},
                                {"encoding", std::string(name_of(how.encoding))},
                                {"group_size", has_groups ? block : int64_t{0}}});
    return {};
  }

  Status embedding(RuleContext& context, AddedWeights& bound) {
    AtenBuilder f(context);
    std::optional<WeightId> weight = weight_of(f.graph(), f.argument("weight"));
    if (!weight) return {};
    bool is_byte = options_.embedding.encoding == EmbeddingEncoding::k8w;
    int64_t width = program_[*weight].shape[1];
    int64_t block = options_.embedding.group_size > 0 ? options_.embedding.group_size : width;
    if (width % block != 0 || (!is_byte && (width % 2 != 0 || block % 2 != 0))) {
      embedding_.left.insert(program_[*weight].name);
      embedding_.widths.insert(width);
      return {};
    }
    embedding_.stored.insert(program_[*weight].name);
    QuantizedForm form = is_byte ? QuantizedForm::kI8 : QuantizedForm::kSwapped;
    ARGOSY_TRY(Stored data, stored(*weight, is_byte ? "embedding8" : "embedding4", block, form, DType::kF32));
    note(*weight, "embedding", is_byte ? "8w" : "4w", options_.embedding.group_size > 0 ? block : 0);
    ValueId values = bound.value(context, data.values), scales = bound.value(context, data.scales);
    std::vector<AtenBuilder::Named> arguments = {{"weight", values},
                                                 {"weight_scales", scales},
                                                 {"weight_zero_points", None{}},
                                                 {"weight_quant_min", int64_t{is_byte ? -128 : -8}},
                                                 {"weight_quant_max", int64_t{is_byte ? 127 : 7}},
                                                 {"indices", f.argument("indices")}};
    std::string_view schema = is_byte ? kEmbeddingByte : kEmbeddingNibbles;
    if (DType dtype = f.result().dtype; dtype != DType::kF32) {
      schema = is_byte ? kEmbeddingByteTyped : kEmbeddingNibblesTyped;
      arguments.emplace_back("dtype", dtype);
    }
    f.become(schema, std::move(arguments));
    return {};
  }

  Program& program_;
  const LoweringOptions& options_;
  Diagnostics& diagnostics_;
  std::map<std::string, Stored> stored_;
  Tally linear_, encoder_linear_, embedding_;
  bool has_changed_ = false;
};

Status check(const LinearQuantization& how, Recipe recipe, std::string_view flag) {
  if (how.encoding == LinearEncoding::kFloat && how.group_size >= 0)
    return fail(ErrorCode::kInvalidInput, format("{}-group-size is of {}, which is not given", flag, flag),
                format("add {} 8da4w, or leave it out", flag));
  if (how.encoding == LinearEncoding::kFloat) return {};
  if (recipe != Recipe::kXnnpack) {
    return fail(ErrorCode::kUnsupportedFeature, "linear layers of integers are computed by XNNPACK alone",
                "use --recipe xnnpack");
  }
  if (how.encoding != LinearEncoding::k8da4w && how.group_size > 0) {
    return fail(ErrorCode::kUnsupportedFeature,
                format("the runtime has no kernel for {} in groups of {}", name_of(how.encoding), how.group_size),
                "use --qlinear-group-size 0 (a scale for each row), or 8da4w");
  }
  if (how.group_size > 0 && how.group_size % kGroupUnit != 0) {
    return fail(ErrorCode::kInvalidInput, format("{}-group-size {} fits no layer", flag, how.group_size),
                format("XNNPACK packs groups of {} values, or of a multiple; 0 is a scale for each row", kGroupUnit));
  }
  return {};
}

}  // namespace

Status check_quantization(const LoweringOptions& options) {
  ARGOSY_TRY_STATUS(check(options.linear, options.recipe, "--qlinear"));
  ARGOSY_TRY_STATUS(check(options.encoder_linear, options.recipe, "--qlinear-encoder"));
  if (options.convolution != ConvolutionEncoding::kFloat && options.recipe != Recipe::kXnnpack) {
    return fail(ErrorCode::kUnsupportedFeature, "convolutions of integers are computed by XNNPACK alone",
                "use --recipe xnnpack");
  }
  const EmbeddingQuantization& embedding = options.embedding;
  if (embedding.encoding == EmbeddingEncoding::kFloat && embedding.group_size > 0)
    return fail(ErrorCode::kInvalidInput, "--qembedding-group-size is of --qembedding, which is not given",
                "add --qembedding 8w or 4w, or leave it out");
  return {};
}

Pass quantize_weights(const LoweringOptions& options) {
  return {"quantize-weights", [options](Program& program, PassContext& context) -> Result<bool> {
            ARGOSY_TRY_STATUS(check_quantization(options));
            Quantizer quantizer(program, options, context.diagnostics);
            for (Component& component : program.components) ARGOSY_TRY_STATUS(quantizer.component(component));
            ARGOSY_TRY_STATUS(quantizer.check_all());
            return quantizer.has_changed();
          }};
}

}  // namespace argosy::executorch
