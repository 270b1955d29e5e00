#include "backends/executorch/quantize_layers.h"

#include <map>
#include <set>

#include "backends/executorch/quantize.h"
#include "backends/executorch/xnnpack/op.h"
#include "base/text.h"
#include "ir/rewriter.h"
#include "passes/added_weights.h"
#include "passes/aten_builder.h"
#include "tensor/quantize_bias.h"
#include "tensor/quantize_rows.h"

namespace argosy::executorch {
namespace {

/// Integers and their scales, in the program's table.
struct Integers {
  WeightId values, scales;
};

class LayerQuantizer {
 public:
  LayerQuantizer(Program& program, const LoweringOptions& options, const ActivationRanges& ranges)
      : program_(program), options_(options), ranges_(ranges) {}

  Status component(Component& component) {
    const bool has_linear = linear_of(options_, component).encoding == LinearEncoding::k8a8w;
    const bool has_convolutions = options_.convolution == ConvolutionEncoding::k8a8w;
    for (Graph& graph : component.graphs) {
      Rewriter rewriter(graph);
      AddedWeights bound;
      for (NodeId node : graph.nodes()) {
        std::string_view op = program_.schemas[graph[node].op].name;
        const bool is_linear = has_linear && op == "aten.linear.default";
        const bool is_convolution = has_convolutions && (op == "aten.conv1d.default" || op == "aten.conv2d.default" ||
                                                         op == "aten.convolution.default");
        if (!is_linear && !is_convolution) continue;
        RuleContext context{program_, component, rewriter, node};
        rewriter.insert_before(node);
        ARGOSY_TRY_STATUS(or_refused([&] { return layer(context, is_linear, bound); }));
      }
      has_changed_ = has_changed_ || rewriter.has_changed();
    }
    return {};
  }

  bool has_changed() const { return has_changed_; }

  Status check(Diagnostics& diagnostics) const {
    if (stored_names_.empty() && unseen_.empty() && declined_.empty())
      return fail(ErrorCode::kInvalidInput, "8a8w has nothing to do: the model has no such layers", "leave it out");
    if (stored_names_.empty()) {
      const bool is_unseen = !unseen_.empty();
      return fail(ErrorCode::kInvalidInput,
                  format("8a8w fits none of {} layers, for example {}: {}", unseen_.size() + declined_.size(),
                         quoted(*(is_unseen ? unseen_ : declined_).begin()), is_unseen ? kUnseen : kDeclined),
                  is_unseen ? "calibrate on what makes the model use them" : "use another encoding");
    }
    auto note = [&](const std::set<std::string>& names, std::string_view why) {
      if (names.empty()) return;
      diagnostics.notes.push_back(format("{} of {} layers stay as they are, for example {}: {}", names.size(),
                                         stored_names_.size() + unseen_.size() + declined_.size(),
                                         quoted(*names.begin()), why));
    };
    note(unseen_, kUnseen);
    note(declined_, kDeclined);
    return {};
  }

 private:
  static constexpr std::string_view kUnseen = "no activations of theirs were seen, or only zeros";
  static constexpr std::string_view kDeclined = "XNNPACK computes no layers of integers in their form";

  Status layer(RuleContext& context, bool is_linear, AddedWeights& bound) {
    AtenBuilder f(context);
    const auto* value = f.argument("weight").get_if<ValueId>();
    if (value == nullptr || !f.graph()[*value].weight.is_valid()) return {};
    const WeightId id = f.graph()[*value].weight;
    const std::string name = program_[id].name;
    NodeView view(program_, context.component, f.graph(), context.node);  // until the graph changes
    const bool is_transposed = view.has("transposed") && view.boolean("transposed") != false;
    const bool is_float = view.type(*value).dtype == DType::kF32 && f.result().dtype == DType::kF32;
    if (!is_float || is_transposed || find_xnnpack_op(view) == nullptr) {
      declined_.insert(name);
      return {};
    }
    auto seen = ranges_.find(name);
    if (seen == ranges_.end() || (seen->second.input_least == 0 && seen->second.input_most == 0)) {
      unseen_.insert(name);
      return {};
    }
    const std::optional<ValueId> given_bias = view.tensor("bias");
    const StaticRounding rounding = rounding_of(seen->second);
    ARGOSY_TRY(Integers weight, stored(id));
    std::vector<AtenBuilder::Named> arguments = {{"input", f.argument("input")},
                                                 {"weight", bound.value(context, weight.values)},
                                                 {"scales", bound.value(context, weight.scales)},
                                                 {"bias", None{}},
                                                 {"bias_scales", None{}}};
    if (given_bias) {
      ARGOSY_TRY(Integers bias, stored_bias(f.graph()[*given_bias].weight, id, weight, rounding));
      arguments[3].second = bound.value(context, bias.values);
      arguments[4].second = bound.value(context, bias.scales);
    }
    if (!is_linear) {
      for (const char* each : {"stride", "padding", "dilation", "groups"})
        arguments.push_back({each, f.argument(each)});
    }
    arguments.push_back({"input_scale", static_cast<double>(rounding.input_scale)});
    arguments.push_back({"input_zero", int64_t{rounding.input_zero}});
    arguments.push_back({"output_scale", static_cast<double>(rounding.output_scale)});
    arguments.push_back({"output_zero", int64_t{rounding.output_zero}});
    stored_names_.insert(name);
    note_quantized(program_, {name, is_linear ? "linear" : "convolution", "8a8w", 0, rounding});
    f.become(is_linear ? kStaticLinear : kStaticConvolution, std::move(arguments));
    return {};
  }

  Result<Integers> stored(WeightId id) {
    auto [found, is_new] = weights_.try_emplace(id);
    if (!is_new) return found->second;
    const Weight weight = program_[id];
    std::vector<int64_t> shape(weight.shape.begin(), weight.shape.end());
    ARGOSY_TRY(TensorSourcePtr rows, reshaped(weight.source, {shape[0], weight.source->elements() / shape[0]}));
    ARGOSY_TRY(QuantizedRows quantized, quantized_rows(rows, true));
    ARGOSY_TRY(TensorSourcePtr values, reshaped(quantized.values, shape));
    found->second.values = add_weight(program_, weight.name + ".8a8w", std::move(values));
    found->second.scales = add_weight(program_, weight.name + ".8a8w.scales", quantized.scales);
    return found->second;
  }

  Result<Integers> stored_bias(WeightId id, WeightId weight, const Integers& stored, const StaticRounding& rounding) {
    auto [found, is_new] = biases_.try_emplace({id, weight});
    if (!is_new) return found->second;
    ARGOSY_TRY(QuantizedBias quantized,
               quantized_bias(program_[id].source, program_[stored.scales].source, rounding.input_scale));
    const std::string name = format("{}.8a8w.bias", program_[weight].name);
    found->second.values = add_weight(program_, name, quantized.values);
    found->second.scales = add_weight(program_, name + ".scales", quantized.scales);
    return found->second;
  }

  Program& program_;
  const LoweringOptions& options_;
  const ActivationRanges& ranges_;
  std::map<WeightId, Integers> weights_;
  std::map<std::pair<WeightId, WeightId>, Integers> biases_;  // by bias and weight
  std::set<std::string> stored_names_, unseen_, declined_;
  bool has_changed_ = false;
};

}  // namespace

Pass quantize_layers(const LoweringOptions& options) {
  return {"quantize-layers", [options](Program& program, PassContext& context) -> Result<bool> {
            ARGOSY_TRY(ActivationRanges ranges, noted_ranges(program));
            LayerQuantizer quantizer(program, options, ranges);
            for (Component& component : program.components) ARGOSY_TRY_STATUS(quantizer.component(component));
            ARGOSY_TRY_STATUS(quantizer.check(context.diagnostics));
            return quantizer.has_changed();
          }};
}

}  // namespace argosy::executorch
