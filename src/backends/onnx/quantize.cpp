#include "backends/onnx/quantize.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "backends/onnx/kept_integers.h"
#include "backends/onnx/made_weight.h"
#include "base/text.h"
#include "ir/rewriter.h"
#include "passes/added_weights.h"
#include "passes/aten_builder.h"
#include "passes/pipeline.h"
#include "passes/quantized_weights.h"
#include "tensor/quantize_rows.h"
#include "tensor/quantize_source.h"

namespace argosy::onnx {
namespace {

constexpr std::string_view kEmbedding = kEmbeddingRule, kLinear = "linear", kProduct = "product", kExperts = "experts";
constexpr std::string_view kRulePrefix = "at:", kSchemePrefix = "scheme:";
constexpr int kKeptBits = -1;
constexpr int64_t kMostTogether = 1 << 18;  // values that NF4 quantises at once

/// Whether the path has these parts, one after the other: "lm_head", "mlp.down_proj".
bool has_parts(std::string_view path, std::string_view parts) {
  for (size_t at = path.find(parts); at != std::string_view::npos; at = path.find(parts, at + 1)) {
    size_t end = at + parts.size();
    if ((at == 0 || path[at - 1] == '.') && (end == path.size() || path[end] == '.')) return true;
  }
  return false;
}

/// Integers, scales and zero points in the program's table.
struct Stored {
  std::vector<WeightId> outputs;
  WeightId rows;  // the integers without a dim for blocks, if it is needed
};

class Quantizer {
 public:
  Quantizer(Program& program, const Quantization& how) : program_(program), how_(how), is_used_(how.rules.size()) {}

  Status component(Component& component) {
    for (argosy::Graph& graph : component.graphs) {
      Rewriter rewriter(graph);
      bound_ = {};
      for (NodeId node : graph.nodes()) {
        std::string_view op = program_.schemas[graph[node].op].name;
        RuleContext context{program_, component, rewriter, node};
        rewriter.insert_before(node);
        if (op == "aten.linear.default") {
          ARGOSY_TRY_STATUS(or_refused([&] { return product(context, "input", "weight", kLinear); }));
        } else if (op == "aten.mm.default") {
          ARGOSY_TRY_STATUS(or_refused([&] { return product(context, "self", "mat2", kProduct); }));
        } else if (op == "aten.matmul.default") {
          ARGOSY_TRY_STATUS(or_refused([&] { return product(context, "self", "other", kProduct); }));
        } else if (op == "onnx.experts.default") {
          ARGOSY_TRY_STATUS(or_refused([&] { return experts(context); }));
        } else if (op == "aten.embedding.default") {
          ARGOSY_TRY_STATUS(or_refused([&] { return embedding(context); }));
        }
      }
      has_changed_ = has_changed_ || rewriter.has_changed();
      note_left(graph);
    }
    return {};
  }

  bool has_changed() const { return has_changed_; }

  Status check_all(Diagnostics& diagnostics) const {
    for (size_t i = 0; i < is_used_.size(); ++i) {
      if (is_used_[i]) continue;
      return fail(ErrorCode::kInvalidInput,
                  format("--quantize has a rule for {}, and no layer is called so", quoted(how_.rules[i].where)),
                  "name a module by its path or part of it, such as lm_head or mlp.down_proj, or embedding");
    }
    ARGOSY_TRY_STATUS(integers_.check(how_, diagnostics));
    if (!integers_.is_empty() && stored_.empty()) return {};
    if (stored_.empty() && !left_.empty()) {
      return fail(ErrorCode::kInvalidInput,
                  format("--quantize fits none of the weights, {} among them", quoted(left_.begin()->first)),
                  how_.is_dynamic ? "products in integers take float32: give --dtype float32"
                                  : "quantised products take float32 and float16: give --dtype float32 or float16");
    }
    if (stored_.empty() && !uneven_.empty()) {
      return fail(ErrorCode::kInvalidInput,
                  format("--quantize fits none of the {} linear layers: blocks of {} fit none",
                         short_.size() + uneven_.size(), how_.block),
                  "give a smaller --quantize-block, or leave --quantize out");
    }
    if (stored_.empty()) {
      return fail(ErrorCode::kInvalidInput,
                  short_.empty() ? "--quantize has nothing to do: the model has no linear layers with weights"
                                 : format("--quantize fits none of the {} linear layers: all rows are shorter than {}",
                                          short_.size(), how_.block),
                  short_.empty() ? "leave it out" : "give a smaller --quantize-block, or leave it out");
    }
    if (!short_.empty()) {
      diagnostics.notes.push_back(format("{} of {} weights stay as they are: their rows are shorter than {}",
                                         short_.size(), short_.size() + names_.size(), how_.block));
    }
    if (!uneven_.empty()) {
      diagnostics.notes.push_back(format("{} of {} weights stay as they are: blocks of {} do not fit them",
                                         uneven_.size(), uneven_.size() + names_.size(), how_.block));
    }
    if (!left_.empty()) {
      uint64_t bytes = 0;
      for (const auto& [name, size] : left_) bytes += size;
      diagnostics.notes.push_back(format("{} ({}) stay as they are, {} among them: no product of the engine takes them",
                                         left_.size() == 1 ? "1 weight" : format("{} weights", left_.size()),
                                         format_bytes(bytes), quoted(left_.begin()->first)));
    }
    return {};
  }

 private:
  /// A float matrix that the file brings along, or one for each expert.
  const Weight* weight_of(const AtenBuilder& f, const Argument& argument, size_t rank = 2) const {
    const auto* value = argument.get_if<ValueId>();
    if (value == nullptr || !f.graph()[*value].weight.is_valid()) return nullptr;
    const Weight& weight = program_[f.graph()[*value].weight];
    bool is_float = weight.dtype == DType::kF32 || weight.dtype == DType::kF16;
    if (how_.is_dynamic) is_float = weight.dtype == DType::kF32;
    return is_float && weight.shape.size() == rank ? &weight : nullptr;
  }

  /// Bits for a use of a weight; 0: as it is. kKeptBits: those that the checkpoint has.
  int bits_for(const RuleContext& context, const Weight& weight, std::string_view use) {
    const bool is_embedding = use == kEmbedding;
    const argosy::Graph& graph = context.rewriter.graph();
    std::string path;
    if (LocationId location = graph[context.node].location; location.is_valid())
      path = program_.locations[location].module_path;
    int bits = is_embedding ? 0 : how_.bits;
    if (how_.keeps && use == kLinear && integers_.look_at(weight)) bits = kKeptBits;
    for (size_t i = 0; i < how_.rules.size(); ++i) {
      const QuantizeRule& rule = how_.rules[i];
      bool fits =
          rule.where == kEmbedding ? is_embedding : has_parts(path, rule.where) || has_parts(weight.name, rule.where);
      if (!fits) continue;
      is_used_[i] = true;
      bits = rule.bits;
    }
    if (bits == 0) kept_.insert(weight.name);
    return bits;
  }

  Result<Stored*> stored(const Weight& weight, TensorSourcePtr source, int bits) {
    auto [found, is_new] = stored_.try_emplace(format("{} {}", bits, source->recipe()));
    if (!is_new) return &found->second;
    const std::string name = format("{}.{}", weight.name, encoding_of(how_, bits));
    BlockQuantization how{{how_.method, stored_bits(how_, bits), how_.is_symmetric, weight.dtype},
                          how_.block,
                          QuantizedForm::kBlocks,
                          bits == kOwnScheme ? how_.own : nullptr};
    ARGOSY_TRY(SourceGroupPtr group, quantized_blocks(std::move(source), how));
    constexpr std::string_view kSuffixes[] = {"", ".scales", ".zero_points"};
    for (size_t i = 0; i < group->size(); ++i)
      found->second.outputs.push_back(add_weight(program_, name + std::string(kSuffixes[i]), group_output(group, i)));
    return &found->second;
  }

  /// Blocks of NF4 go on from row to row, in a matrix without dims. So it is quantised in as many rows at once as are
  /// whole blocks.
  Result<Stored*> stored_flat(const Weight& weight, TensorSourcePtr source) {
    auto [found, is_new] = stored_.try_emplace(format("{} {}", kNf4, source->recipe()));
    if (!is_new) return &found->second;
    const int64_t rows = source->shape()[0], width = source->shape()[1], together = std::lcm(width, how_.block);
    ARGOSY_TRY(TensorSourcePtr values, reshaped(std::move(source), {rows * width / together, together}));
    BlockQuantization how{{QuantizeMethod::kNormal, 4, true, weight.dtype}, how_.block, QuantizedForm::kSwapped};
    ARGOSY_TRY(SourceGroupPtr group, quantized_blocks(std::move(values), how));
    const std::string name = format("{}.{}", weight.name, encoding_of(how_, kNf4));
    for (size_t i = 0; i < group->size(); ++i) {
      TensorSourcePtr output = group_output(group, i);
      const int64_t elements = output->elements();
      ARGOSY_TRY(output, reshaped(std::move(output), {elements}));
      found->second.outputs.push_back(add_weight(program_, i == 0 ? name : name + ".scales", std::move(output)));
    }
    return &found->second;
  }

  /// Whether NF4 stores a weight in whole blocks, of a few rows at once. Each of those that it was joined from has to
  /// be stored as if it were alone: PyTorch knows them apart.
  bool is_even(const Weight& weight, int64_t width) {
    if (width % how_.block == 0) return true;
    const bool is_small = std::lcm(width, how_.block) <= kMostTogether;
    auto is_whole = [&](const std::string& name) {
      auto found = std::ranges::find(program_.weights, name, &Weight::name);
      return found != program_.weights.end() && found->source->elements() % how_.block == 0;
    };
    if (is_small && std::ranges::all_of(parts_of(program_, weight.name), is_whole)) return true;
    uneven_.insert(weight.name);
    return false;
  }

  /// By rows, for products in integers: values as they are or turned, scales and perhaps zero points.
  Result<Stored*> stored_rows(const Weight& weight, TensorSourcePtr source, bool is_turned) {
    auto [found, is_new] = stored_.try_emplace(format("rows {} {}", is_turned, source->recipe()));
    if (!is_new) return &found->second;
    const std::string name = format("{}.{}{}", weight.name, encoding_of(how_, 8), is_turned ? "" : ".rows");
    ARGOSY_TRY(QuantizedRows rows, quantized_rows(source, how_.is_symmetric));
    if (is_turned) {
      ARGOSY_TRY(rows.values, transposed(std::move(rows.values), {1, 0}));
    }
    Stored& data = found->second;
    data.outputs.push_back(add_weight(program_, name, std::move(rows.values)));
    data.outputs.push_back(add_weight(program_, name + ".scales", std::move(rows.scales)));
    if (rows.zero_points)
      data.outputs.push_back(add_weight(program_, name + ".zero_points", std::move(rows.zero_points)));
    return &data;
  }

  ValueId bind(const RuleContext& context, WeightId id) { return bound_.value(context, id); }

  bool is_too_short(const Weight& weight, int64_t width) {
    if (how_.is_dynamic || width >= how_.block) return false;
    short_.insert(weight.name);
    return true;
  }

  /// Matrices of products and of experts that are still floats, though no rule says so and their rows are long enough:
  /// those of other dtypes, and experts in a form that is not recognised.
  void note_left(const argosy::Graph& graph) {
    for (NodeId node : graph.nodes()) {
      std::string_view op = program_.schemas[graph[node].op].name;
      auto has = [&](std::string_view part) { return op.find(part) != std::string_view::npos; };
      const bool is_product = has("mm") || has("linear") || has("matmul");
      const bool is_choice = has("experts") || has(".index") || has(".select") || has(".transpose") || has(".permute");
      for (const Argument& argument : graph[node].arguments) {
        for_each_value(argument, [&](ValueId value, uint32_t) {
          if (!graph[value].weight.is_valid()) return;
          const Weight& weight = program_[graph[value].weight];
          bool is_matrix = is_product && weight.shape.size() == 2;
          bool are_matrices = (is_product || is_choice) && weight.shape.size() == 3;
          if (!is_float(weight.dtype) || !(is_matrix || are_matrices) || kept_.contains(weight.name)) return;
          if (short_.contains(weight.name) || uneven_.contains(weight.name) ||
              (!how_.is_dynamic && std::ranges::min(std::span(weight.shape).last(2)) < how_.block))
            return;
          left_[weight.name] = static_cast<uint64_t>(weight.source->bytes());
        });
      }
    }
  }

  int level_for(const Weight& weight) const {
    return weight.dtype == DType::kF16 ? how_.half_accuracy_level : how_.accuracy_level;
  }

  void note(const Weight& weight, std::string_view use, int bits) {
    names_.insert(weight.name);
    std::string encoding = encoding_of(how_, bits);
    const bool has_level = (use == kLinear || use == kProduct) && !how_.is_dynamic && bits != kNf4;
    if (has_level && level_for(weight) == 4) encoding += "-a8";
    note_quantized(program_, {weight.name, std::string(use), encoding, how_.is_dynamic ? 0 : how_.block});
  }

  Status product(RuleContext& context, std::string_view input, std::string_view other, std::string_view use) {
    AtenBuilder f(context);
    const Weight* found = weight_of(f, f.argument(other));
    if (found == nullptr || f.rank(f[input]) < 2) return {};
    const Weight weight = *found;
    const bool is_turned = use == kProduct;  // [in, out], as products have it
    int64_t width = weight.shape[is_turned ? 0 : 1];
    int bits = bits_for(context, weight, use);
    if (bits == kKeptBits) return kept_product(context, weight);
    if (bits == 0 || (bits == kNf4 ? !is_even(weight, width) : is_too_short(weight, width))) return {};
    TensorSourcePtr source = weight.source;
    if (is_turned) {
      ARGOSY_TRY(source, transposed(std::move(source), {1, 0}));
    }
    if (bits == kNf4) {
      const int64_t rows = source->shape()[0];
      ARGOSY_TRY(Stored * data, stored_flat(weight, std::move(source)));
      note(weight, use, bits);
      f.become(kMatMulBnb4, {{"input", f.argument(input)},
                             {"weight", bind(context, data->outputs[0])},
                             {"scales", bind(context, data->outputs[1])},
                             {"bias", f.has("bias") ? f.argument("bias") : Argument(None{})},
                             {"rows", rows},
                             {"width", width},
                             {"block_size", how_.block}});
      return {};
    }
    ARGOSY_TRY(Stored * data, how_.is_dynamic ? stored_rows(weight, std::move(source), true)
                                              : stored(weight, std::move(source), bits));
    note(weight, use, bits);
    return multiply(context, f.argument(input), data->outputs,
                    {width, stored_bits(how_, bits), how_.block, level_for(weight)});
  }

  struct Integers {
    int64_t width;
    int bits;
    int64_t block;
    int level;
  };

  /// The node becomes a product with integers, scales and perhaps zero points.
  Status multiply(RuleContext& context, const Argument& input, const std::vector<WeightId>& stored,
                  const Integers& how) {
    AtenBuilder f(context);
    std::vector<ValueId> values;
    for (WeightId output : stored) values.push_back(bind(context, output));
    const Argument zeros = values.size() > 2 ? Argument(values[2]) : Argument(None{});
    const Argument bias = f.has("bias") ? f.argument("bias") : Argument(None{});
    if (how_.is_dynamic) {
      f.become(
          kDynamicProduct,
          {{"input", input}, {"weight", values[0]}, {"scales", values[1]}, {"zero_points", zeros}, {"bias", bias}});
      return {};
    }
    f.become(kMatMulNBits, {{"input", input},
                            {"weight", values[0]},
                            {"scales", values[1]},
                            {"zero_points", zeros},
                            {"bias", bias},
                            {"width", how.width},
                            {"bits", int64_t{how.bits}},
                            {"block_size", how.block},
                            {"accuracy_level", int64_t{how.level}}});
    return {};
  }

  Status kept_product(RuleContext& context, const Weight& weight) {
    AtenBuilder f(context);
    const int64_t width = weight.shape[1];
    const int level = level_for(weight);
    names_.insert(weight.name);
    ARGOSY_TRY(const KeptIntegers::Stored* data, integers_.store(program_, weight, level));
    return multiply(context, f.argument("input"), data->outputs, {width, data->bits, data->block, level});
  }

  Status embedding(RuleContext& context) {
    AtenBuilder f(context);
    const Weight* found = weight_of(f, f.argument("weight"));
    if (found == nullptr) return {};
    const Weight weight = *found;
    int bits = bits_for(context, weight, kEmbedding);
    if (bits != 0 && how_.is_dynamic) return embedding_rows(context, f, weight);
    if (bits == kNf4) return {};  // the engine has no such op for rows
    // The op knows whole blocks only.
    if (bits == 0 || is_too_short(weight, weight.shape[1]) || weight.shape[1] % how_.block != 0) return {};
    ARGOSY_TRY(Stored * data, stored(weight, weight.source, bits));
    note(weight, kEmbedding, bits);
    ARGOSY_TRY(WeightId rows, as_rows(weight, *data, bits));
    ValueId values = bind(context, rows), scales = bind(context, data->outputs[1]);
    Argument zeros = bind_zeros(context, *data);
    f.become(kGatherBlockQuantized, {{"weight", values},
                                     {"indices", f.argument("indices")},
                                     {"scales", scales},
                                     {"zero_points", zeros},
                                     {"bits", int64_t{stored_bits(how_, bits)}},
                                     {"block_size", how_.block}});
    return {};
  }

  Status embedding_rows(RuleContext& context, AtenBuilder& f, const Weight& weight) {
    ARGOSY_TRY(Stored * data, stored_rows(weight, weight.source, false));
    note(weight, kEmbedding, 8);
    ValueId values = bind(context, data->outputs[0]), scales = bind(context, data->outputs[1]);
    Argument zeros = bind_zeros(context, *data);
    f.become(kGatherRows,
             {{"weight", values}, {"indices", f.argument("indices")}, {"scales", scales}, {"zero_points", zeros}});
    return {};
  }

  /// The integers without a dim for blocks; the same bytes.
  Result<WeightId> as_rows(const Weight& weight, Stored& data, int bits) {
    if (data.rows.is_valid()) return data.rows;
    std::vector<int64_t> shape = weight.shape;
    shape.back() = shape.back() * stored_bits(how_, bits) / 8;
    const Weight& integers = program_[data.outputs[0]];
    ARGOSY_TRY(TensorSourcePtr source, reshaped(integers.source, std::move(shape)));
    data.rows = add_weight(program_, integers.name + ".rows", std::move(source));
    return data.rows;
  }

  Argument bind_zeros(const RuleContext& context, const Stored& data) {
    return data.outputs.size() > 2 ? Argument(bind(context, data.outputs[2])) : Argument(None{});
  }

  Status experts(RuleContext& context) {
    if (how_.is_dynamic) return {};  // the engine has no such op for them
    AtenBuilder f(context);
    constexpr std::string_view kMatrices[] = {"first", "second"};
    std::vector<Weight> weights;
    int bits = 0;
    for (std::string_view name : kMatrices) {
      const Weight* found = weight_of(f, f.argument(name), 3);
      if (found == nullptr) return {};
      weights.push_back(*found);
      bits = bits_for(context, *found, kExperts);
      if (bits == kNf4) return {};  // the engine has no such op for them
      // The op knows whole blocks only.
      if (bits == 0 || is_too_short(*found, found->shape[2]) || found->shape[2] % how_.block != 0) return {};
    }
    std::vector<AtenBuilder::Named> arguments;
    for (std::string_view name : {"input", "router", "first_bias", "second_bias", "k", "alpha", "beta", "limit"})
      arguments.emplace_back(name, f.argument(name));
    for (size_t i = 0; i < weights.size(); ++i) {
      Weight& weight = weights[i];
      ARGOSY_TRY(Stored * data, stored(weight, weight.source, bits));
      ARGOSY_TRY(WeightId rows, as_rows(weight, *data, bits));
      arguments.emplace_back(kMatrices[i], bind(context, rows));
      arguments.emplace_back(i == 0 ? "first_scales" : "second_scales", bind(context, data->outputs[1]));
      arguments.emplace_back(i == 0 ? "first_zero_points" : "second_zero_points", bind_zeros(context, *data));
      const bool is_turned = weight.name.ends_with(kTurned);
      weight.name = weight.name.substr(0, weight.name.find('/'));
      note(weight, is_turned ? "turned-experts" : kExperts, bits);
    }
    arguments.emplace_back("bits", int64_t{stored_bits(how_, bits)});
    arguments.emplace_back("block_size", how_.block);
    f.become(kQuantizedExperts, std::move(arguments));
    return {};
  }

  Program& program_;
  const Quantization& how_;
  std::map<std::string, Stored> stored_;  // by bits and recipe
  KeptIntegers integers_;
  AddedWeights bound_;                    // in the graph at hand
  std::vector<bool> is_used_;             // rules
  std::set<std::string> names_, short_;   // of weights
  std::set<std::string> uneven_;          // blocks of NF4 do not fit them
  std::set<std::string> kept_;            // as they are, by a rule
  std::map<std::string, uint64_t> left_;  // as they are by no rule, and their bytes
  bool has_changed_ = false;
};

}  // namespace

Pass quantize_weights(const Quantization& given) {
  Quantization how = given;
  how.block = block_of(given);
  std::map<std::string, int64_t> settings = {{"bits", how.bits},
                                             {"block", how.block},
                                             {"keeps", how.keeps ? 1 : 0},
                                             {"method", static_cast<int64_t>(how.method)},
                                             {"symmetric", how.is_symmetric ? 1 : 0},
                                             {"dynamic", how.is_dynamic ? 1 : 0},
                                             {"accuracy", how.accuracy_level},
                                             {"half-accuracy", how.half_accuracy_level}};
  if (!how.own_name.empty()) settings[format("{}{}", kSchemePrefix, how.own_name)] = 1;
  for (const QuantizeRule& rule : how.rules) settings[format("{}{}", kRulePrefix, rule.where)] = rule.bits;
  return {"quantize-weights-for-onnx",
          [how](Program& program, PassContext& context) -> Result<bool> {
            Quantizer quantizer(program, how);
            for (Component& component : program.components) ARGOSY_TRY_STATUS(quantizer.component(component));
            ARGOSY_TRY_STATUS(quantizer.check_all(context.diagnostics));
            return quantizer.has_changed();
          },
          settings_text(settings)};
}

Result<Pass> quantize_weights_with(std::string_view settings) {
  ARGOSY_TRY(auto numbers, parse_settings(settings));
  Quantization how;
  for (const auto& [name, number] : numbers) {
    if (name == "bits") how.bits = static_cast<int>(number);
    if (name == "block") how.block = number;
    if (name == "keeps") how.keeps = number != 0;
    if (name == "method") how.method = static_cast<QuantizeMethod>(number);
    if (name == "symmetric") how.is_symmetric = number != 0;
    if (name == "dynamic") how.is_dynamic = number != 0;
    if (name == "accuracy") how.accuracy_level = static_cast<int>(number);
    if (name == "half-accuracy") how.half_accuracy_level = static_cast<int>(number);
    if (name.starts_with(kSchemePrefix)) {
      return fail(ErrorCode::kUnsupportedFeature,
                  format("the scheme {} is a package's, which a pass alone does not find",
                         quoted(name.substr(kSchemePrefix.size()))),
                  "run the export itself again");
    }
    if (name.starts_with(kRulePrefix)) how.rules.push_back({name.substr(kRulePrefix.size()), static_cast<int>(number)});
  }
  ARGOSY_TRY_STATUS(check_quantization(how));
  return quantize_weights(how);
}

}  // namespace argosy::onnx
