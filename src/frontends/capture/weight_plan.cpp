#include "frontends/capture/weight_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/text.h"
#include "frontends/pt2/json_field.h"
#include "io/file.h"
#include "io/json.h"

namespace argosy {
namespace {

constexpr uint64_t kMaxPlan = uint64_t{512} << 20;
constexpr int64_t kMaxFillBytes = int64_t{256} << 20;  // of all weights together: they are held in memory

struct OpName {
  std::string_view name;
  PlanOp op;
};
constexpr std::array<OpName, 11> kOps = {{{"stack", PlanOp::kStack},
                                          {"concat", PlanOp::kConcat},
                                          {"slice", PlanOp::kSlice},
                                          {"transpose", PlanOp::kTranspose},
                                          {"reshape", PlanOp::kReshape},
                                          {"cast", PlanOp::kCast},
                                          {"bitcast", PlanOp::kBitcast},
                                          {"gather", PlanOp::kGather},
                                          {"dequantize", PlanOp::kDequantize},
                                          {"add_product", PlanOp::kAddProduct},
                                          {"affine", PlanOp::kAffine}}};

/// How many inputs a step takes.
struct InputCount {
  size_t least, most;
};
InputCount input_count(PlanOp op) {
  switch (op) {
    case PlanOp::kStack:
    case PlanOp::kConcat: return {1, std::numeric_limits<size_t>::max()};
    case PlanOp::kGather: return {2, 2};
    case PlanOp::kDequantize: return {2, 3};
    case PlanOp::kAddProduct: return {3, 3};
    default: return {1, 1};
  }
}

Result<DType> read_dtype(const JsonField& field) {
  ARGOSY_TRY(std::string_view text, field.string());
  std::optional<DType> dtype = dtype_from_text(text);
  if (!dtype) return field.error(format("{} is no dtype", quoted(text)));
  return *dtype;
}

/// Numbers from 0 to `max`.
Result<std::vector<int64_t>> read_numbers(const JsonField& field, int64_t max) {
  ARGOSY_TRY_STATUS(field.require_array());
  std::vector<int64_t> numbers;
  int64_t index = 0;
  for (JsonView item : field.view().items()) {
    JsonField number_field = field.item(item, index++);
    ARGOSY_TRY(int64_t number, number_field.integer());
    if (number < 0 || number > max) return number_field.error(format("{} is out of range", number));
    numbers.push_back(number);
  }
  return numbers;
}

Result<std::vector<int64_t>> read_shape(const JsonField& field) {
  ARGOSY_TRY(std::vector<int64_t> shape, read_numbers(field, std::numeric_limits<int64_t>::max()));
  if (shape.size() > kMaxTensorRank) return field.error(format("{} dims", shape.size()));
  return shape;
}

Result<int> read_dim(const JsonField& field) {
  ARGOSY_TRY(int64_t dim, field.integer());
  if (dim < 0 || dim >= kMaxTensorRank) return field.error(format("{} is out of range", dim));
  return static_cast<int>(dim);
}

Result<std::vector<std::string>> read_names(const JsonField& field) {
  ARGOSY_TRY_STATUS(field.require_array());
  std::vector<std::string> names;
  int64_t index = 0;
  for (JsonView item : field.view().items()) {
    JsonField name_field = field.item(item, index++);
    ARGOSY_TRY(std::string_view name, name_field.string());
    names.emplace_back(name);
  }
  return names;
}

Result<std::vector<std::byte>> read_hex(const JsonField& field) {
  ARGOSY_TRY(std::string_view text, field.string());
  auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return field.error("not hexadecimal");
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  if (text.size() % 2 != 0) return field.error("not a whole number of bytes");
  return bytes;
}

}  // namespace

/// Reads the JSON form; the errors name the place in it.
class WeightPlanReader {
 public:
  Result<WeightPlan> read(const JsonField& root) {
    ARGOSY_TRY_STATUS(root.require_object());
    ARGOSY_TRY_STATUS(check_version(root));
    ARGOSY_TRY(std::string_view model_class, root.member("model_class").string());
    ARGOSY_TRY(std::string_view hash, root.member("checkpoint_hash").string());
    plan_.model_class_ = model_class;
    plan_.checkpoint_hash_ = hash;
    ARGOSY_TRY(plan_.missing_, read_names(root.member("missing")));
    ARGOSY_TRY(plan_.unexpected_, read_names(root.member("unexpected")));
    if (JsonField notes = root.member("notes"); notes.is_valid()) {
      ARGOSY_TRY(plan_.notes_, read_names(notes));
    }
    JsonField weights = root.member("weights");
    ARGOSY_TRY_STATUS(weights.require_array());
    int64_t index = 0;
    for (JsonView item : weights.view().items()) {
      JsonField field = weights.item(item, index++);
      ARGOSY_TRY(PlannedWeight weight, read_weight(field));
      plan_.weights_.push_back(std::move(weight));
    }
    ARGOSY_TRY_STATUS(check_names(weights));
    return std::move(plan_);
  }

 private:
  static Status check_version(const JsonField& root) {
    JsonField name = root.member("format");
    ARGOSY_TRY(std::string_view format_name, name.string());
    if (format_name != "argosy-weight-plan")
      return name.error(format("expected \"argosy-weight-plan\", found {}", quoted(format_name)));
    ARGOSY_TRY(int64_t version, root.member("version").integer());
    if (version >= 1 && version <= kWeightPlanVersion) return {};
    return fail(ErrorCode::kUnsupportedVersion,
                format("weight plan format {} is not read, only 1 to {}", version, kWeightPlanVersion),
                version > kWeightPlanVersion ? "a newer argosy wrote it: update this one, or plan again"
                                             : "plan the weights again");
  }

  Result<PlannedWeight> read_weight(const JsonField& field) {
    ARGOSY_TRY_STATUS(field.require_object());
    PlannedWeight weight;
    ARGOSY_TRY(std::string_view name, field.member("name").string());
    weight.name = name;
    ARGOSY_TRY(weight.dtype, read_dtype(field.member("dtype")));
    ARGOSY_TRY(weight.shape, read_shape(field.member("shape")));
    ARGOSY_TRY(weight.origin, read_origin(field));
    switch (weight.origin) {
      case PlanOrigin::kSources: {
        ARGOSY_TRY(weight.sources, read_names(field.member("sources")));
        ARGOSY_TRY(weight.steps, read_steps(field, weight.sources.size()));
        break;
      }
      case PlanOrigin::kTied: {
        ARGOSY_TRY(std::string_view tied_to, field.member("tied_to").string());
        weight.tied_to = tied_to;
        break;
      }
      case PlanOrigin::kFill: {
        ARGOSY_TRY(weight.bytes, read_hex(field.member("fill")));
        auto total = checked_tensor_bytes(weight.dtype, weight.shape);
        if (!total || *total > kMaxFillBytes || weight.bytes.size() * 8 != static_cast<size_t>(bits_of(weight.dtype)))
          return field.error("fill does not fit dtype and shape");
        filled_bytes_ += *total;
        if (filled_bytes_ > kMaxFillBytes) return field.error("more to fill than a plan may ask for");
        break;
      }
      case PlanOrigin::kBytes: {
        ARGOSY_TRY(weight.bytes, read_hex(field.member("bytes")));
        auto total = checked_tensor_bytes(weight.dtype, weight.shape);
        if (!total || static_cast<size_t>(*total) != weight.bytes.size())
          return field.error("bytes do not fit dtype and shape");
        break;
      }
    }
    return weight;
  }

  static Result<PlanOrigin> read_origin(const JsonField& field) {
    constexpr std::array<std::pair<std::string_view, PlanOrigin>, 4> kOrigins = {{{"sources", PlanOrigin::kSources},
                                                                                  {"tied_to", PlanOrigin::kTied},
                                                                                  {"fill", PlanOrigin::kFill},
                                                                                  {"bytes", PlanOrigin::kBytes}}};
    std::optional<PlanOrigin> found;
    for (const auto& [key, origin] : kOrigins) {
      if (!field.view().find(key).is_valid()) continue;
      if (found) return field.error("a weight has more than one of sources, tied_to, fill and bytes");
      found = origin;
    }
    if (!found) return field.error("a weight has none of sources, tied_to, fill and bytes");
    return *found;
  }

  static Result<std::vector<PlanStep>> read_steps(const JsonField& weight, size_t source_count) {
    JsonField steps_field = weight.member("steps");
    std::vector<PlanStep> steps;
    if (steps_field.is_valid()) {
      ARGOSY_TRY_STATUS(steps_field.require_array());
      int64_t index = 0;
      for (JsonView item : steps_field.view().items()) {
        JsonField field = steps_field.item(item, index);
        ARGOSY_TRY(PlanStep step, read_step(field, source_count + static_cast<size_t>(index++)));
        steps.push_back(std::move(step));
      }
    }
    if (source_count == 0) return weight.error("sources are empty");
    if (steps.empty() && source_count != 1) return weight.error(format("{} sources and no step", source_count));
    return steps;
  }

  /// `value_count`: how many values there are before this step.
  static Result<PlanStep> read_step(const JsonField& field, size_t value_count) {
    ARGOSY_TRY_STATUS(field.require_object());
    PlanStep step;
    JsonField op_field = field.member("op");
    ARGOSY_TRY(std::string_view op, op_field.string());
    auto known = std::find_if(kOps.begin(), kOps.end(), [&](const OpName& row) { return row.name == op; });
    if (known == kOps.end()) return op_field.error(format("{} is no step", quoted(op)));
    step.op = known->op;
    JsonField inputs = field.member("inputs");
    ARGOSY_TRY(std::vector<int64_t> numbers, read_numbers(inputs, static_cast<int64_t>(value_count) - 1));
    step.inputs.assign(numbers.begin(), numbers.end());
    InputCount expected = input_count(step.op);
    if (step.inputs.size() < expected.least || step.inputs.size() > expected.most)
      return inputs.error(format("{} inputs for {}", step.inputs.size(), op));
    switch (step.op) {
      case PlanOp::kStack:
      case PlanOp::kConcat: {
        ARGOSY_TRY(step.dim, read_dim(field.member("dim")));
        break;
      }
      case PlanOp::kSlice: {
        ARGOSY_TRY(step.dim, read_dim(field.member("dim")));
        ARGOSY_TRY(step.start, field.member("start").integer());
        ARGOSY_TRY(step.length, field.member("length").integer());
        break;
      }
      case PlanOp::kTranspose: {
        ARGOSY_TRY(std::vector<int64_t> order, read_numbers(field.member("order"), kMaxTensorRank - 1));
        step.order.assign(order.begin(), order.end());
        break;
      }
      case PlanOp::kReshape: {
        ARGOSY_TRY(step.shape, read_shape(field.member("shape")));
        break;
      }
      case PlanOp::kCast:
      case PlanOp::kBitcast: {
        ARGOSY_TRY(step.dtype, read_dtype(field.member("dtype")));
        break;
      }
      case PlanOp::kGather: break;
      case PlanOp::kDequantize: {
        ARGOSY_TRY(step.dtype, read_dtype(field.member("dtype")));
        ARGOSY_TRY(step.block, read_shape(field.member("block")));
        if (JsonField zero = field.member("zero"); zero.is_valid()) {
          ARGOSY_TRY(step.zero, zero.integer());
        }
        if (JsonField modulus = field.member("modulus"); modulus.is_valid()) {
          ARGOSY_TRY(step.modulus, modulus.integer());
        }
        break;
      }
      case PlanOp::kAddProduct: {
        ARGOSY_TRY(step.scale, field.member("scale").number());
        break;
      }
      case PlanOp::kAffine: {
        ARGOSY_TRY(step.dtype, read_dtype(field.member("dtype")));
        ARGOSY_TRY(step.scale, field.member("scale").number());
        ARGOSY_TRY(step.offset, field.member("offset").number());
        break;
      }
    }
    return step;
  }

  Status check_names(const JsonField& weights) {
    auto by_name = [](const PlannedWeight& a, const PlannedWeight& b) { return a.name < b.name; };
    std::sort(plan_.weights_.begin(), plan_.weights_.end(), by_name);
    for (size_t i = 0; i < plan_.weights_.size(); ++i) {
      const PlannedWeight& weight = plan_.weights_[i];
      if (i > 0 && plan_.weights_[i - 1].name == weight.name)
        return weights.error(format("weight {} occurs twice", quoted(weight.name)));
      if (weight.origin != PlanOrigin::kTied) continue;
      const PlannedWeight* owner = plan_.find(weight.tied_to);
      if (owner == nullptr || owner->origin == PlanOrigin::kTied)
        return weights.error(
            format("{} is tied to {}, which the plan does not make", quoted(weight.name), quoted(weight.tied_to)));
      if (owner->dtype != weight.dtype || owner->shape != weight.shape)
        return weights.error(
            format("{} is tied to {}, which has another dtype or shape", quoted(weight.name), quoted(weight.tied_to)));
    }
    return {};
  }

  WeightPlan plan_;
  int64_t filled_bytes_ = 0;
};

Result<WeightPlan> WeightPlan::parse(std::string text, std::string_view name) {
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse_owned(std::move(text), name));
  Result<WeightPlan> plan = WeightPlanReader().read(JsonField(document.root(), ""));
  if (!plan) return fail(std::move(plan.error().in(format("weight plan {}", name))));
  return plan;
}

Result<WeightPlan> WeightPlan::read(const std::filesystem::path& path) {
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxPlan));
  return parse(std::move(text), quoted(path.native(), 1000));
}

const PlannedWeight* WeightPlan::find(std::string_view name) const {
  auto found = std::lower_bound(weights_.begin(), weights_.end(), name,
                                [](const PlannedWeight& weight, std::string_view key) { return weight.name < key; });
  return found != weights_.end() && found->name == name ? &*found : nullptr;
}

}  // namespace argosy
