#include <algorithm>
#include <array>

#include "base/text.h"
#include "inspect/graph_report.h"
#include "inspect/graph_walk.h"

namespace argosy {
namespace {

constexpr std::string_view kRuntimeDomain = "com.microsoft";
constexpr int64_t kOpsetOfLayerNorm = 17, kOpsetOfAttention = 23, kOpsetOfRmsNorm = 23, kOpsetOfRotary = 23;
constexpr int64_t kHeadStep = 8;  // GroupQueryAttention takes heads whose width is a multiple of it

struct StructureOp {
  std::string_view domain, op;
  StructureKind kind;
};

constexpr StructureOp kStructureOps[] = {
    {"", "Attention", StructureKind::kAttention},
    {kRuntimeDomain, "Attention", StructureKind::kAttention},
    {kRuntimeDomain, "DecoderMaskedMultiHeadAttention", StructureKind::kAttention},
    {kRuntimeDomain, "DecoderMaskedSelfAttention", StructureKind::kAttention},
    {kRuntimeDomain, "GroupQueryAttention", StructureKind::kAttention},
    {kRuntimeDomain, "LinearAttention", StructureKind::kAttention},
    {kRuntimeDomain, "MultiHeadAttention", StructureKind::kAttention},
    {kRuntimeDomain, "PackedAttention", StructureKind::kAttention},
    {kRuntimeDomain, "PackedMultiHeadAttention", StructureKind::kAttention},
    {kRuntimeDomain, "PagedAttention", StructureKind::kAttention},
    {kRuntimeDomain, "QAttention", StructureKind::kAttention},
    {kRuntimeDomain, "SparseAttention", StructureKind::kAttention},
    {"", "BatchNormalization", StructureKind::kNorm},
    {"", "GroupNormalization", StructureKind::kNorm},
    {"", "InstanceNormalization", StructureKind::kNorm},
    {"", "LayerNormalization", StructureKind::kNorm},
    {"", "RMSNormalization", StructureKind::kNorm},
    {"", "SimplifiedLayerNormalization", StructureKind::kNorm},
    {kRuntimeDomain, "EmbedLayerNormalization", StructureKind::kNorm},
    {kRuntimeDomain, "GroupNorm", StructureKind::kNorm},
    {kRuntimeDomain, "SimplifiedLayerNormalization", StructureKind::kNorm},
    {kRuntimeDomain, "SkipGroupNorm", StructureKind::kNorm},
    {kRuntimeDomain, "SkipLayerNormalization", StructureKind::kNorm},
    {kRuntimeDomain, "SkipSimplifiedLayerNormalization", StructureKind::kNorm},
    {"", "RotaryEmbedding", StructureKind::kRotary},
    {kRuntimeDomain, "GemmaRotaryEmbedding", StructureKind::kRotary},
    {kRuntimeDomain, "RotaryEmbedding", StructureKind::kRotary},
};

class StructureFinder {
 public:
  explicit StructureFinder(const OnnxModel& model) : model_(model), walk_(model), is_seen_(model.graph.nodes.size()) {
    for (const auto& [domain, version] : model.opset_imports) {
      if (domain.empty() || domain == "ai.onnx") opset_ = version;
    }
    for (const auto& [domain, op] : model.graph.ops) {
      const auto* row = std::ranges::find_if(
          kStructureOps, [&](const StructureOp& each) { return each.domain == domain && each.op == op; });
      rows_.push_back(row == std::ranges::end(kStructureOps) ? nullptr : row);
      if (domain == kRuntimeDomain || op == "SimplifiedLayerNormalization") uses_runtime_ops_ = true;
    }
  }

  std::vector<FoundStructure> run() {
    for (uint32_t i = 0; i < walk_.graph().nodes.size(); ++i) {
      if (const StructureOp* row = rows_[walk_.node(i).op]) {
        add_op(i, *row);
      } else if (walk_.is_product(i)) {
        find_attention(i);
      } else if (walk_.is(i, "Sqrt") || walk_.is(i, "Pow")) {
        find_norm(i);
      } else if (walk_.is(i, "Add")) {
        find_rotary(i);
      } else if (walk_.is(i, "Concat")) {
        find_rotary_halves(i);
      }
    }
    std::ranges::sort(found_, {}, [](const FoundStructure& each) { return std::pair(each.node, each.kind); });
    return std::move(found_);
  }

 private:
  void add_op(uint32_t index, const StructureOp& row) {
    const OnnxNode& node = walk_.node(index);
    std::string name = onnx_op_name(row.domain, row.op);
    std::vector<std::string> facts;
    if (row.kind == StructureKind::kAttention) {
      if (int64_t heads = node.integer("num_heads", node.integer("q_num_heads", 0)); heads > 0)
        facts.push_back(format("{} heads", heads));
      if (int64_t heads = node.integer("kv_num_heads", 0); heads > 0) facts.push_back(format("{} of keys", heads));
      if (int64_t window = node.integer("local_window_size", -1); window > 0)
        facts.push_back(format("a window of {}", window));
    }
    std::string what = facts.empty() ? name : format("{} ({})", name, join(facts, ", "));
    found_.push_back({row.kind, true, index, std::move(what), ""});
    if (row.kind == StructureKind::kAttention && node.integer("do_rotary", 0) != 0)
      found_.push_back({StructureKind::kRotary, true, index, format("inside {} (do_rotary)", name), ""});
  }

  void add_written_out(StructureKind kind, uint32_t node, std::string what, std::string why) {
    if (is_seen_[node]) return;
    is_seen_[node] = true;
    found_.push_back({kind, false, node, std::move(what), std::move(why)});
  }

  // ---- attention: softmax(q @ k …) @ v ----

  bool is_product_of_computed(uint32_t node) const {
    return walk_.is_product(node) && walk_.node(node).inputs.size() >= 2 && !walk_.is_weight(walk_.input(node, 0)) &&
           !walk_.is_weight(walk_.input(node, 1));
  }

  void find_attention(uint32_t product) {
    if (!is_product_of_computed(product)) return;
    auto is_softmax = [&](uint32_t node) { return walk_.is(node, "Softmax"); };
    auto is_scores = [&](uint32_t node) { return is_product_of_computed(node); };
    for (size_t place : {size_t{0}, size_t{1}}) {
      std::optional<uint32_t> softmax = walk_.nearest(walk_.input(product, place), is_softmax);
      if (!softmax) continue;
      std::optional<uint32_t> scores = walk_.nearest(walk_.input(*softmax, 0), is_scores);
      if (!scores) continue;
      add_written_out(StructureKind::kAttention, *softmax, "a Softmax between two products", why_no_attention(*scores));
      return;
    }
  }

  /// A Concat of an input of the graph and of something computed that keys come from.
  std::optional<uint32_t> joined_keys(uint32_t scores) const {
    auto is_joined = [&](uint32_t node) {
      return walk_.is(node, "Concat") && std::ranges::any_of(walk_.node(node).inputs, [&](uint32_t value) {
               return walk_.graph_input(value).has_value();
             });
    };
    std::optional<uint32_t> found = walk_.nearest(walk_.input(scores, 1), is_joined);
    return found ? found : walk_.nearest(walk_.input(scores, 0), is_joined);
  }

  std::string why_no_attention(uint32_t scores) const {
    if (!uses_runtime_ops_) return why_no_op(kOpsetOfAttention);
    std::optional<uint32_t> joined = joined_keys(scores);
    if (!joined)
      return "its keys are not a cache joined with new ones, which GroupQueryAttention is for, nor f32 with tokens "
             "before heads, which MultiHeadAttention is for";
    for (uint32_t value : walk_.node(*joined).inputs) {
      std::optional<uint32_t> index = walk_.graph_input(value);
      if (!index) continue;
      const OnnxValue& past = model_.inputs[*index];
      std::optional<int64_t> width = past.shape.size() == 4 ? past.shape[3].value : std::nullopt;
      if (width && *width % kHeadStep != 0)
        return format("its heads are {} wide, and GroupQueryAttention takes multiples of {}", *width, kHeadStep);
      if (past.type != "f32" && past.type != "f16")
        return format("its cache is {}, and GroupQueryAttention takes f32 and f16", past.type);
    }
    uint64_t readers = walk_.node(*joined).outputs.empty() ? 0 : walk_.readers(walk_.node(*joined).outputs[0]);
    if (readers > 1)
      return format("its joined keys are read by {} nodes, and an op would keep them to itself", readers);
    return "";
  }

  // ---- norms: x / sqrt(mean(x * x) + eps) ----

  /// What is squared, if a value is a square.
  std::optional<uint32_t> squared(uint32_t value) const {
    if (auto node = walk_.made_by(value, "Pow")) return walk_.input(*node, 0);
    auto node = walk_.made_by(value, "Mul");
    if (!node || walk_.input(*node, 0) != walk_.input(*node, 1)) return std::nullopt;
    return walk_.input(*node, 0);
  }

  void find_norm(uint32_t root) {
    std::optional<uint32_t> sum = walk_.made_by(walk_.input(root, 0), "Add");
    if (!sum) return;
    for (size_t place : {size_t{0}, size_t{1}}) {
      std::optional<uint32_t> mean = walk_.made_by(walk_.input(*sum, place), "ReduceMean");
      std::optional<uint32_t> x = mean ? squared(walk_.input(*mean, 0)) : std::nullopt;
      if (!x) continue;
      std::optional<uint32_t> centred = walk_.made_by(*x, "Sub");
      bool is_centred = centred && walk_.made_by(walk_.input(*centred, 1), "ReduceMean");
      add_written_out(StructureKind::kNorm, root, is_centred ? "a layer norm in small ops" : "an RMS norm in small ops",
                      is_centred ? why_no_op(kOpsetOfLayerNorm) : why_no_op(kOpsetOfRmsNorm));
      return;
    }
  }

  // ---- rotary embeddings ----

  std::optional<uint32_t> past(std::optional<uint32_t> node, std::string_view op) const {
    return node && walk_.is(*node, op) ? walk_.maker_past_casts(walk_.input(*node, 0)) : node;
  }

  /// x, if the value is x with a negated half moved in front: Concat(Neg(part of x), part of x).
  std::optional<uint32_t> swapped(uint32_t value) const {
    std::optional<uint32_t> joined = past(walk_.maker_past_casts(value), "Reshape");
    if (!joined || !walk_.is(*joined, "Concat")) return std::nullopt;
    std::optional<uint32_t> negated = past(walk_.maker_past_casts(walk_.input(*joined, 0)), "Unsqueeze");
    if (!negated || !walk_.is(*negated, "Neg")) return std::nullopt;
    std::optional<uint32_t> part = walk_.maker_past_casts(walk_.input(*negated, 0));
    if (!part || !(walk_.is(*part, "Slice") || walk_.is(*part, "Split") || walk_.is(*part, "Gather")))
      return std::nullopt;
    return walk_.input(*part, 0);
  }

  bool reads(uint32_t node, uint32_t value) const {
    const std::vector<uint32_t>& inputs = walk_.node(node).inputs;
    return std::ranges::find(inputs, value) != inputs.end();
  }

  /// x * cos + swapped(x) * sin
  void find_rotary(uint32_t sum) {
    for (size_t place : {size_t{0}, size_t{1}}) {
      std::optional<uint32_t> by_cos = walk_.made_by(walk_.input(sum, place), "Mul"),
                              by_sin = walk_.made_by(walk_.input(sum, 1 - place), "Mul");
      if (!by_cos || !by_sin) return;
      for (uint32_t factor : walk_.node(*by_sin).inputs) {
        std::optional<uint32_t> x = swapped(factor);
        if (x && reads(*by_cos, *x)) return add_rotary(sum);
      }
    }
  }

  /// The two factors of each of two products that a node adds or subtracts.
  using Factors = std::array<uint32_t, 4>;
  std::optional<Factors> factors(uint32_t value, std::string_view op) const {
    std::optional<uint32_t> node = past(walk_.maker_past_casts(value), "Unsqueeze");
    if (!node || !walk_.is(*node, op)) return std::nullopt;
    std::optional<uint32_t> a = walk_.made_by(walk_.input(*node, 0), "Mul"),
                            b = walk_.made_by(walk_.input(*node, 1), "Mul");
    if (!a || !b) return std::nullopt;
    return Factors{walk_.input(*a, 0), walk_.input(*a, 1), walk_.input(*b, 0), walk_.input(*b, 1)};
  }

  /// Concat(a * cos - b * sin, b * cos + a * sin)
  void find_rotary_halves(uint32_t joined) {
    std::optional<Factors> first = factors(walk_.input(joined, 0), "Sub"),
                           second = factors(walk_.input(joined, 1), "Add");
    if (!first || !second) return;
    auto same = [](uint32_t x, uint32_t y, uint32_t p, uint32_t q) { return (x == p && y == q) || (x == q && y == p); };
    const Factors& s = *second;
    for (size_t i : {size_t{0}, size_t{1}}) {
      for (size_t j : {size_t{0}, size_t{1}}) {
        uint32_t a = (*first)[i], cos = (*first)[1 - i], b = (*first)[2 + j], sin = (*first)[3 - j];
        if ((same(b, cos, s[0], s[1]) && same(a, sin, s[2], s[3])) ||
            (same(b, cos, s[2], s[3]) && same(a, sin, s[0], s[1])))
          return add_rotary(joined);
      }
    }
  }

  void add_rotary(uint32_t node) {
    add_written_out(StructureKind::kRotary, node, "products with sines and cosines in small ops",
                    why_no_op(kOpsetOfRotary));
  }

  /// Why none of the ops that the file may use computes it, if ONNX has an op for it since that opset; empty: one
  /// might.
  std::string why_no_op(int64_t since) const {
    if (uses_runtime_ops_ || opset_ >= since) return "";
    return format("opset {} has no op for it, {} has; the file uses no ops of ONNX Runtime", opset_, since);
  }

  const OnnxModel& model_;
  GraphWalk walk_;
  std::vector<bool> is_seen_;             // nodes: of each, one structure is reported
  std::vector<const StructureOp*> rows_;  // by op; null: it is none of them
  int64_t opset_ = 0;
  bool uses_runtime_ops_ = false;
  std::vector<FoundStructure> found_;
};

}  // namespace

std::string_view to_text(StructureKind kind) {
  switch (kind) {
    case StructureKind::kAttention: return "attention";
    case StructureKind::kNorm: return "norm";
    case StructureKind::kRotary: return "rotary embedding";
  }
  return "";
}

std::vector<FoundStructure> find_structures(const OnnxModel& model) { return StructureFinder(model).run(); }

std::string onnx_op_name(std::string_view domain, std::string_view op_type) {
  return domain.empty() || domain == "ai.onnx" ? std::string(op_type) : format("{}.{}", domain, op_type);
}

}  // namespace argosy
