#include "backends/executorch/encode.h"

#include <program_generated.h>

#include <set>

#include "backends/executorch/extended_header.h"
#include "backends/executorch/method_values.h"
#include "base/check.h"
#include "base/text.h"

namespace argosy::executorch {
namespace {

namespace fb = executorch_flatbuffer;
using flatbuffers::Offset;

// Several megabytes are usual; a flatbuffer's own limit is 2 GB.
constexpr size_t kMaxWritten = size_t{1} << 30;

using ExternalNames = std::map<std::tuple<std::string, DType, std::vector<int32_t>>, std::string>;

class Encoder {
 public:
  Encoder(const Document& document, const DataMap& map) : document_(document), map_(map) {
    if (!map.is_beside) return;
    for (const ExternalTensor& each : external_tensors(document)) {
      external_names_[{document.data[each.data].key, each.dtype, each.sizes}] = each.name;
    }
  }

  Result<std::string> run() {
    std::vector<Offset<fb::ExecutionPlan>> plans;
    for (size_t i = 0; i < document_.methods.size(); ++i) {
      plans.push_back(plan(document_.methods[i], i));
      if (builder_.GetSize() > kMaxWritten) {
        return fail(ErrorCode::kUnsupportedFeature,
                    "the program has more instructions and values than a .pte file holds");
      }
    }
    std::vector<Offset<fb::DataSegment>> segments;
    for (const Segment& each : map_.segments)
      segments.push_back(fb::CreateDataSegment(builder_, each.offset, each.size));
    std::vector<Offset<fb::NamedData>> named;
    for (size_t i = 0; i < map_.data.size(); ++i) {
      named.push_back(fb::CreateNamedData(builder_, builder_.CreateString(document_.data[i].key), map_.data[i]));
    }
    auto all_plans = builder_.CreateVector(plans);
    auto all_segments = builder_.CreateVector(segments);
    // Without data the table has its reserved entry only: that tells the runtime not to look for an older form.
    auto constants = fb::CreateSubsegmentOffsetsDirect(builder_, map_.constants.segment, &map_.constants.offsets);
    Offset<flatbuffers::Vector<Offset<fb::SubsegmentOffsets>>> states;
    if (map_.states.offsets.size() > 1) {
      std::vector tables{fb::CreateSubsegmentOffsetsDirect(builder_, map_.states.segment, &map_.states.offsets)};
      states = builder_.CreateVector(tables);
    }
    Offset<flatbuffers::Vector<Offset<fb::NamedData>>> all_named;
    if (!named.empty()) all_named = builder_.CreateVector(named);
    fb::ProgramBuilder program(builder_);
    program.add_version(0);
    program.add_execution_plan(all_plans);
    program.add_segments(all_segments);
    program.add_constant_segment(constants);
    if (!states.IsNull()) program.add_mutable_data_segments(states);
    if (!all_named.IsNull()) program.add_named_data(all_named);
    fb::FinishProgramBuffer(builder_, program.Finish());
    uint64_t data_size = 0;
    for (const Segment& each : map_.segments) data_size = std::max(data_size, each.offset + each.size);
    return with_program_header({reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()},
                               !map_.segments.empty(), data_size);
  }

 private:
  Offset<fb::ExecutionPlan> plan(const Method& method, size_t index) {
    std::vector<Offset<fb::EValue>> values;
    for (size_t i = 0; i < method.values.size(); ++i) values.push_back(value(method, i));
    std::vector<Offset<fb::Instruction>> instructions;
    for (const Instruction& each : method.instructions) instructions.push_back(instruction(method, each));
    std::vector<Offset<fb::Operator>> kernels;
    for (const KernelName& each : method.kernels) {
      kernels.push_back(fb::CreateOperatorDirect(builder_, each.name.c_str(), each.overload.c_str()));
    }
    std::vector<Offset<fb::BackendDelegate>> delegates;
    ARGOSY_CHECK(map_.delegates[index].size() == method.delegates.size(), "a delegate has no segment");
    for (size_t i = 0; i < method.delegates.size(); ++i) {
      auto payload =
          fb::CreateBackendDelegateDataReference(builder_, fb::DataLocation::SEGMENT, map_.delegates[index][i]);
      std::vector<Offset<fb::CompileSpec>> no_options;
      delegates.push_back(
          fb::CreateBackendDelegateDirect(builder_, method.delegates[i].backend.c_str(), payload, &no_options));
    }
    check_indices(method, method.inputs);
    check_indices(method, method.outputs);
    std::vector<Offset<fb::Chain>> chains{
        fb::CreateChainDirect(builder_, &method.inputs, &method.outputs, &instructions, nullptr)};
    std::vector<int64_t> arenas{0};  // the first one is reserved
    for (uint64_t size : method.arenas) arenas.push_back(static_cast<int64_t>(size));
    return fb::CreateExecutionPlanDirect(builder_, method.name.c_str(), 0, &values, &method.inputs, &method.outputs,
                                         &chains, &kernels, &delegates, &arenas);
  }

  static void check_indices(const Method& method, const std::vector<ValueIndex>& indices) {
    for (ValueIndex each : indices) {
      ARGOSY_CHECK(each >= 0 && static_cast<size_t>(each) < method.values.size(), "a value's index is out of range");
    }
  }

  template <class Table>
  Offset<fb::EValue> wrapped(fb::KernelTypes type, Offset<Table> table) {
    return fb::CreateEValue(builder_, type, table.Union());
  }

  Offset<fb::EValue> value(const Method& method, size_t index) {
    const Value& value = method.values[index];
    if (std::holds_alternative<NoValue>(value)) return wrapped(fb::KernelTypes::Null, fb::CreateNull(builder_));
    if (const auto* each = std::get_if<int64_t>(&value)) {
      return wrapped(fb::KernelTypes::Int, fb::CreateInt(builder_, *each));
    }
    if (const auto* each = std::get_if<bool>(&value)) {
      return wrapped(fb::KernelTypes::Bool, fb::CreateBool(builder_, *each));
    }
    if (const auto* each = std::get_if<double>(&value)) {
      return wrapped(fb::KernelTypes::Double, fb::CreateDouble(builder_, *each));
    }
    if (const auto* each = std::get_if<std::string>(&value)) {
      return wrapped(fb::KernelTypes::String, fb::CreateString(builder_, builder_.CreateString(*each)));
    }
    if (const auto* each = std::get_if<IntValues>(&value)) {
      check_indices(method, each->items);
      std::vector<int64_t> items(each->items.begin(), each->items.end());
      return wrapped(fb::KernelTypes::IntList, fb::CreateIntListDirect(builder_, &items));
    }
    if (const auto* each = std::get_if<std::vector<double>>(&value)) {
      return wrapped(fb::KernelTypes::DoubleList, fb::CreateDoubleListDirect(builder_, each));
    }
    if (const auto* each = std::get_if<std::vector<bool>>(&value)) {
      std::vector<uint8_t> items(each->begin(), each->end());
      return wrapped(fb::KernelTypes::BoolList, fb::CreateBoolListDirect(builder_, &items));
    }
    if (const auto* each = std::get_if<TensorValues>(&value)) {
      // The runtime makes values in their order, and a list of tensors looks at them at once.
      for (ValueIndex item : each->items) {
        ARGOSY_CHECK(item < static_cast<ValueIndex>(index), "a list stands before a tensor of it");
        ARGOSY_CHECK(item >= 0 || (each->has_none && item == kNoValue), "a list of tensors has a gap");
      }
      if (each->has_none) {
        return wrapped(fb::KernelTypes::OptionalTensorList, fb::CreateOptionalTensorListDirect(builder_, &each->items));
      }
      return wrapped(fb::KernelTypes::TensorList, fb::CreateTensorListDirect(builder_, &each->items));
    }
    return wrapped(fb::KernelTypes::Tensor, tensor(std::get<Tensor>(value)));
  }

  Offset<fb::Tensor> tensor(const Tensor& tensor) {
    std::vector<uint8_t> dim_order;
    for (size_t i = 0; i < tensor.sizes.size(); ++i) dim_order.push_back(static_cast<uint8_t>(i));
    bool is_constant = tensor.storage == Storage::kConstant;
    ARGOSY_CHECK(is_constant || tensor.arena != 0, "a tensor has no place in memory");
    ARGOSY_CHECK(!is_constant || !tensor.key.empty(), "a constant has no data");
    Offset<fb::AllocationDetails> place;
    if (!is_constant) {
      place = fb::CreateAllocationDetails(builder_, tensor.arena, static_cast<uint32_t>(tensor.offset),
                                          static_cast<uint32_t>(tensor.offset >> 32));
    }
    uint32_t buffer = 0;
    Offset<fb::ExtraTensorInfo> extra;
    if (!tensor.key.empty() && map_.is_beside) {
      const std::string& name = external_names_.at({tensor.key, tensor.dtype, tensor.sizes});
      extra = fb::CreateExtraTensorInfoDirect(builder_, 0, name.c_str(), fb::TensorDataLocation::EXTERNAL);
    } else if (is_constant) {
      buffer = map_.constants.indices.at(tensor.key);
    } else if (!tensor.key.empty()) {
      buffer = map_.states.indices.at(tensor.key);
      extra = fb::CreateExtraTensorInfoDirect(builder_, 0, tensor.key.c_str());
    }
    return fb::CreateTensorDirect(
        builder_, static_cast<fb::ScalarType>(*scalar_type(tensor.dtype)), 0, &tensor.sizes, &dim_order, false, buffer,
        place, 0, tensor.is_dynamic ? fb::TensorShapeDynamism::DYNAMIC_BOUND : fb::TensorShapeDynamism::STATIC, extra);
  }

  Offset<fb::Instruction> instruction(const Method& method, const Instruction& instruction) {
    if (const auto* call = std::get_if<KernelCall>(&instruction)) {
      ARGOSY_CHECK(call->kernel < method.kernels.size(), "a kernel's index is out of range");
      check_indices(method, call->arguments);
      auto table = fb::CreateKernelCallDirect(builder_, static_cast<int32_t>(call->kernel), &call->arguments);
      return fb::CreateInstruction(builder_, fb::InstructionArguments::KernelCall, table.Union());
    }
    if (const auto* call = std::get_if<DelegateCall>(&instruction)) {
      ARGOSY_CHECK(call->delegate < method.delegates.size(), "a delegate's index is out of range");
      check_indices(method, call->arguments);
      auto table = fb::CreateDelegateCallDirect(builder_, static_cast<int32_t>(call->delegate), &call->arguments);
      return fb::CreateInstruction(builder_, fb::InstructionArguments::DelegateCall, table.Union());
    }
    if (const auto* move = std::get_if<Move>(&instruction)) {
      check_indices(method, {move->from, move->to});
      auto table = fb::CreateMoveCall(builder_, move->from, move->to);
      return fb::CreateInstruction(builder_, fb::InstructionArguments::MoveCall, table.Union());
    }
    const auto& jump = std::get<JumpIfFalse>(instruction);
    check_indices(method, {jump.condition});
    ARGOSY_CHECK(jump.target <= method.instructions.size(), "a jump leads out of its method");
    auto table = fb::CreateJumpFalseCall(builder_, jump.condition, static_cast<int32_t>(jump.target));
    return fb::CreateInstruction(builder_, fb::InstructionArguments::JumpFalseCall, table.Union());
  }

  const Document& document_;
  const DataMap& map_;
  ExternalNames external_names_;
  flatbuffers::FlatBufferBuilder builder_;
};

}  // namespace

Result<std::string> encode_program(const Document& document, const DataMap& map) {
  for (const Method& method : document.methods) {
    for (const Value& value : method.values) {
      const auto* tensor = std::get_if<Tensor>(&value);
      if (!tensor || scalar_type(tensor->dtype)) continue;
      return fail(ErrorCode::kUnsupportedFeature, format("ExecuTorch has no tensors of {}", to_text(tensor->dtype)));
    }
  }
  return Encoder(document, map).run();
}

std::vector<ExternalTensor> external_tensors(const Document& document) {
  std::map<std::string_view, size_t> index_of;
  std::set<std::string, std::less<>> taken;
  for (size_t i = 0; i < document.data.size(); ++i) {
    index_of[document.data[i].key] = i;
    taken.insert(document.data[i].key);
  }
  std::vector<ExternalTensor> result;
  ExternalNames known;
  std::set<std::string_view> has_plain;  // keys that stand for their first shape
  for (const Method& method : document.methods) {
    for (const Value& value : method.values) {
      const auto* tensor = std::get_if<Tensor>(&value);
      if (!tensor || tensor->key.empty()) continue;
      auto [found, is_new] = known.try_emplace({tensor->key, tensor->dtype, tensor->sizes});
      if (!is_new) continue;
      std::string name = tensor->key;
      if (!has_plain.insert(tensor->key).second) {
        for (int i = 2; !taken.insert(name = format("{}#{}", tensor->key, i)).second; ++i) {
        }
      }
      found->second = name;
      result.push_back({name, index_of.at(tensor->key), tensor->dtype, tensor->sizes});
    }
  }
  return result;
}

}  // namespace argosy::executorch
