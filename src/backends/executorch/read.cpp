#include "backends/executorch/read.h"

#include <program_generated.h>

#include <cstring>

#include "backends/executorch/extended_header.h"
#include "backends/executorch/method_values.h"
#include "backends/executorch/xnnpack/delegate.h"
#include "base/text.h"
#include "io/file.h"

namespace argosy::executorch {
namespace {

namespace fb = executorch_flatbuffer;

constexpr uint64_t kMaxRead = uint64_t{256} << 20;
constexpr uint64_t kMaxPayload = uint64_t{256} << 20;
constexpr size_t kMaxRuntimeRank = 16;  // what the runtime takes

template <class Vector>
size_t size_of(const Vector* vector) {
  return vector ? vector->size() : 0;
}

/// An element of a vector of numbers. Verified vectors begin at a multiple of four, not of their elements' size.
template <class Number>
Number number_of(const flatbuffers::Vector<Number>* vector, size_t index) {
  Number number;
  std::memcpy(&number, vector->Data() + index * sizeof(Number), sizeof(Number));
  return flatbuffers::EndianScalar(number);
}

std::optional<DType> dtype_of(fb::ScalarType type) {
  for (int i = 0; i <= static_cast<int>(DType::kI7); ++i) {
    auto dtype = static_cast<DType>(i);
    if (scalar_type(dtype) == static_cast<int8_t>(type)) return dtype;
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(const ReadPart& read, uint64_t size, const std::string& name) : read_(read), size_(size), name_(name) {}

  Result<ProgramFile> run() {
    ARGOSY_TRY_STATUS(load_flatbuffer());
    const auto* bytes = reinterpret_cast<const uint8_t*>(flatbuffer_.data());
    if (flatbuffer_.size() < 8 || !fb::ProgramBufferHasIdentifier(bytes)) {
      return corrupt("it is no program of ExecuTorch");
    }
    // As many tables as the runtime's own verifier lets pass.
    flatbuffers::Verifier verifier(bytes, flatbuffer_.size());
    if (!fb::VerifyProgramBuffer(verifier)) return corrupt("its tables are damaged");
    const fb::Program* program = fb::GetProgram(bytes);
    ARGOSY_TRY_STATUS(read_segments(*program));
    ARGOSY_TRY_STATUS(read_data(*program));
    if (!program->execution_plan()) return corrupt("it has no methods");
    for (const fb::ExecutionPlan* plan : *program->execution_plan()) ARGOSY_TRY_STATUS(read_method(*plan));
    return std::move(file_);
  }

 private:
  tl::unexpected<Error> corrupt(std::string what) const {
    return fail(ErrorCode::kCorruptFile, format("{}: {}", quoted(name_), what));
  }

  Status load_flatbuffer() {
    std::string head(std::min<uint64_t>(size_, kHeaderBytes), '\0');
    ARGOSY_TRY_STATUS(read_(0, std::as_writable_bytes(std::span(head))));
    file_.bytes = size_;
    file_.flatbuffer_bytes = size_;
    if (auto header = program_header(head)) {
      file_.flatbuffer_bytes = header->flatbuffer_size;
      begin_ = header->segments_begin;
      if (header->flatbuffer_size > size_ || begin_ > size_) return corrupt("it ends before its tables do");
      if (header->data_size > size_ - begin_) return corrupt("it ends before its data does");
      file_.data_bytes = header->data_size;
    }
    if (file_.flatbuffer_bytes > kMaxRead) return corrupt("its tables have more than 256 MB");
    flatbuffer_.resize(file_.flatbuffer_bytes);
    return read_(0, flatbuffer_);
  }

  Status read_segments(const fb::Program& program) {
    if (!program.segments()) return {};
    for (const fb::DataSegment* each : *program.segments()) {
      if (each->offset() > size_ - begin_ || each->size() > size_ - begin_ - each->offset()) {
        return corrupt(format("segment {} lies behind its end", segments_.size()));
      }
      segments_.push_back({begin_ + each->offset(), each->size()});
    }
    return {};
  }

  Status read_data(const fb::Program& program) {
    for (size_t i = 0; i < size_of(program.named_data()); ++i) {
      const fb::NamedData* each = program.named_data()->Get(static_cast<uint32_t>(i));
      if (!each->key() || each->segment_index() >= segments_.size())
        return corrupt(format("its data {} is nowhere", i));
      const Range& place = segments_[each->segment_index()];
      file_.data.push_back({each->key()->str(), place.size});
      if (place.size > 0) key_by_offset_.try_emplace(place.offset, each->key()->str());
    }
    ARGOSY_TRY_STATUS(read_offsets(program.constant_segment(), constants_));
    if (constants_.size() > 1) file_.constant_bytes = segments_[program.constant_segment()->segment_index()].size;
    if (size_of(program.mutable_data_segments()) > 0) {
      ARGOSY_TRY_STATUS(read_offsets(program.mutable_data_segments()->Get(0), states_));
    }
    return {};
  }

  Status read_offsets(const fb::SubsegmentOffsets* table, std::vector<uint64_t>& offsets) {
    if (!table || size_of(table->offsets()) <= 1) return {};
    if (table->segment_index() >= segments_.size()) return corrupt("the segment of its constants is nowhere");
    const Range& place = segments_[table->segment_index()];
    for (size_t i = 0; i < table->offsets()->size(); ++i) {
      uint64_t each = number_of(table->offsets(), i);
      if (each > place.size) return corrupt("a constant lies behind the end of its segment");
      offsets.push_back(place.offset + each);
    }
    return {};
  }

  Status read_method(const fb::ExecutionPlan& plan) {
    Method method;
    if (plan.name()) method.name = plan.name()->str();
    count_ = size_of(plan.values());
    for (size_t i = 0; i < count_; ++i) {
      ARGOSY_TRY(Value value, read_value(*plan.values()->Get(static_cast<uint32_t>(i))));
      method.values.push_back(std::move(value));
    }
    for (const Value& value : method.values) ARGOSY_TRY_STATUS(check_list(method, value));
    ARGOSY_TRY(method.inputs, indices(plan.inputs()));
    ARGOSY_TRY(method.outputs, indices(plan.outputs()));
    for (size_t i = 0; i < size_of(plan.operators()); ++i) {
      const fb::Operator* each = plan.operators()->Get(static_cast<uint32_t>(i));
      method.kernels.push_back(
          {each->name() ? each->name()->str() : "", each->overload() ? each->overload()->str() : ""});
    }
    file_.delegates.emplace_back();
    for (size_t i = 0; i < size_of(plan.delegates()); ++i) {
      ARGOSY_TRY(Delegate each, read_delegate(*plan.delegates()->Get(static_cast<uint32_t>(i))));
      method.delegates.push_back(std::move(each));
    }
    for (size_t i = 0; i < size_of(plan.chains()); ++i) {
      const auto* instructions = plan.chains()->Get(static_cast<uint32_t>(i))->instructions();
      for (size_t k = 0; k < size_of(instructions); ++k) {
        ARGOSY_TRY(Instruction each, read_instruction(method, *instructions->Get(static_cast<uint32_t>(k))));
        method.instructions.push_back(std::move(each));
      }
    }
    for (size_t i = 1; i < size_of(plan.non_const_buffer_sizes()); ++i) {
      int64_t bytes = number_of(plan.non_const_buffer_sizes(), i);
      if (bytes < 0) return corrupt("a method needs memory of a negative size");
      method.arenas.push_back(static_cast<uint64_t>(bytes));
    }
    file_.methods.push_back(std::move(method));
    return {};
  }

  Result<ValueIndex> index(int64_t value) const {
    if (value < 0 || static_cast<uint64_t>(value) >= count_) return corrupt(format("value {} does not exist", value));
    return static_cast<ValueIndex>(value);
  }

  template <class Vector>
  Result<std::vector<ValueIndex>> indices(const Vector* vector, bool may_be_none = false) const {
    std::vector<ValueIndex> result;
    for (size_t i = 0; i < size_of(vector); ++i) {
      int64_t each = number_of(vector, i);
      if (may_be_none && each == kNoValue) {
        result.push_back(kNoValue);
        continue;
      }
      ARGOSY_TRY(ValueIndex item, index(each));
      result.push_back(item);
    }
    return result;
  }

  Result<Value> read_value(const fb::EValue& value) const {
    if (!value.val()) return corrupt("a value has a type and no content");
    switch (value.val_type()) {
      case fb::KernelTypes::Null: return NoValue{};
      case fb::KernelTypes::Int: return value.val_as_Int()->int_val();
      case fb::KernelTypes::Bool: return value.val_as_Bool()->bool_val();
      case fb::KernelTypes::Double: return value.val_as_Double()->double_val();
      case fb::KernelTypes::String: {
        const auto* text = value.val_as_String()->string_val();
        return text ? text->str() : std::string();
      }
      case fb::KernelTypes::IntList: {
        ARGOSY_TRY(std::vector<ValueIndex> items, indices(value.val_as_IntList()->items()));
        return IntValues{std::move(items)};
      }
      case fb::KernelTypes::DoubleList: {
        const auto* items = value.val_as_DoubleList()->items();
        std::vector<double> numbers;
        for (size_t i = 0; i < size_of(items); ++i) numbers.push_back(number_of(items, i));
        return numbers;
      }
      case fb::KernelTypes::BoolList: {
        const auto* items = value.val_as_BoolList()->items();
        std::vector<bool> flags;
        for (size_t i = 0; i < size_of(items); ++i) flags.push_back(items->Get(static_cast<uint32_t>(i)) != 0);
        return flags;
      }
      case fb::KernelTypes::TensorList: {
        ARGOSY_TRY(std::vector<ValueIndex> items, indices(value.val_as_TensorList()->items()));
        return TensorValues{std::move(items), false};
      }
      case fb::KernelTypes::OptionalTensorList: {
        ARGOSY_TRY(std::vector<ValueIndex> items, indices(value.val_as_OptionalTensorList()->items(), true));
        return TensorValues{std::move(items), true};
      }
      case fb::KernelTypes::Tensor: return read_tensor(*value.val_as_Tensor());
      default: return corrupt("a value is of a kind that is not known");
    }
  }

  Result<Value> read_tensor(const fb::Tensor& tensor) const {
    Tensor result;
    auto dtype = dtype_of(tensor.scalar_type());
    if (!dtype) return corrupt(format("a tensor is of type {}", static_cast<int>(tensor.scalar_type())));
    result.dtype = *dtype;
    if (size_of(tensor.sizes()) > kMaxRuntimeRank) return corrupt("a tensor has too many dims");
    for (size_t i = 0; i < size_of(tensor.sizes()); ++i) {
      result.sizes.push_back(tensor.sizes()->Get(static_cast<uint32_t>(i)));
      if (result.sizes.back() < 0) return corrupt("a tensor has a negative size");
    }
    result.is_dynamic = tensor.shape_dynamism() != fb::TensorShapeDynamism::STATIC;
    const auto* extra = tensor.extra_tensor_info();
    if (extra && extra->fully_qualified_name()) result.key = extra->fully_qualified_name()->str();
    bool is_external = extra && extra->location() == fb::TensorDataLocation::EXTERNAL;
    const auto* place = tensor.allocation_info();
    if (!place) {
      result.storage = Storage::kConstant;
      // Without data either, it is memory that the caller provides, in no arena.
      if (!is_external && result.key.empty()) {
        ARGOSY_TRY(result.key, key_of(tensor.data_buffer_idx(), constants_));
      }
      return result;
    }
    result.arena = place->memory_id();
    result.offset = place->memory_offset_low() | uint64_t{place->memory_offset_high()} << 32;
    bool has_value = is_external || tensor.data_buffer_idx() > 0;
    if (has_value && !is_external) ARGOSY_TRY_STATUS(key_of(tensor.data_buffer_idx(), states_));
    result.storage = has_value || result.arena == 2 ? Storage::kState : Storage::kPlanned;
    return result;
  }

  Result<std::string> key_of(uint32_t buffer, const std::vector<uint64_t>& offsets) const {
    if (buffer == 0) return std::string();
    // Files of old have constants among their tables, without names.
    if (offsets.empty()) return std::string();
    if (buffer >= offsets.size()) return corrupt("a tensor's data is nowhere");
    auto found = key_by_offset_.find(offsets[buffer]);
    return found == key_by_offset_.end() ? std::string() : found->second;
  }

  Status check_list(const Method& method, const Value& value) const {
    const auto* list = std::get_if<TensorValues>(&value);
    if (!list) return {};
    for (ValueIndex item : list->items) {
      if (item == kNoValue) continue;
      const Value& each = method.values[static_cast<size_t>(item)];
      bool is_none = list->has_none && std::holds_alternative<NoValue>(each);
      if (!is_none && !std::holds_alternative<Tensor>(each)) return corrupt("a list of tensors holds something else");
    }
    return {};
  }

  Result<Delegate> read_delegate(const fb::BackendDelegate& delegate) {
    Delegate result;
    if (delegate.id()) result.backend = delegate.id()->str();
    file_.delegates.back().emplace_back();
    const auto* place = delegate.processed();
    if (!place || place->location() != fb::DataLocation::SEGMENT) return result;
    if (place->index() >= segments_.size()) return corrupt("the payload of a delegate is nowhere");
    const Range& range = segments_[place->index()];
    DelegateContents& contents = file_.delegates.back().back();
    contents.payload_bytes = range.size;
    payload_bytes_ += range.size;
    // Delegates may name one segment many times, so the sum is limited.
    if (result.backend != kXnnpackBackend || payload_bytes_ > kMaxPayload) return result;
    std::vector<std::byte> payload(range.size);
    ARGOSY_TRY_STATUS(read_(range.offset, payload));
    contents = xnnpack_contents(payload);
    return result;
  }

  Result<Instruction> read_instruction(const Method& method, const fb::Instruction& instruction) const {
    if (const auto* call = instruction.instr_args_as_KernelCall()) {
      auto kernel = static_cast<uint32_t>(call->op_index());
      if (kernel >= method.kernels.size()) return corrupt("an instruction calls a kernel that is not listed");
      ARGOSY_TRY(std::vector<ValueIndex> arguments, indices(call->args()));
      return KernelCall{kernel, std::move(arguments)};
    }
    if (const auto* call = instruction.instr_args_as_DelegateCall()) {
      auto delegate = static_cast<uint32_t>(call->delegate_index());
      if (delegate >= method.delegates.size()) return corrupt("an instruction calls a delegate that is not listed");
      ARGOSY_TRY(std::vector<ValueIndex> arguments, indices(call->args()));
      return DelegateCall{delegate, std::move(arguments)};
    }
    if (const auto* move = instruction.instr_args_as_MoveCall()) {
      ARGOSY_TRY(ValueIndex from, index(move->move_from()));
      ARGOSY_TRY(ValueIndex to, index(move->move_to()));
      return Move{from, to};
    }
    if (const auto* jump = instruction.instr_args_as_JumpFalseCall()) {
      ARGOSY_TRY(ValueIndex condition, index(jump->cond_value_index()));
      if (jump->destination_instruction() < 0) return corrupt("an instruction jumps out of its method");
      return JumpIfFalse{condition, static_cast<uint32_t>(jump->destination_instruction())};
    }
    if (const auto* free = instruction.instr_args_as_FreeCall()) {
      ARGOSY_TRY(ValueIndex value, index(free->value_index()));
      return Move{value, value};
    }
    return corrupt("an instruction is of a kind that is not known");
  }

  struct Range {
    uint64_t offset, size;
  };

  const ReadPart& read_;
  uint64_t size_, begin_ = 0;
  std::string name_;
  std::vector<std::byte> flatbuffer_;
  std::vector<Range> segments_;  // positions in the file
  std::map<uint64_t, std::string> key_by_offset_;
  std::vector<uint64_t> constants_, states_;  // positions in the file; empty: there are none
  size_t count_ = 0;                          // values of the method that is read
  uint64_t payload_bytes_ = 0;
  ProgramFile file_;
};

}  // namespace

Result<ProgramFile> read_program(const ReadPart& read, uint64_t size, const std::string& name) {
  return Reader(read, size, name).run();
}

Result<ProgramFile> read_program(const std::filesystem::path& path) {
  ARGOSY_TRY(auto file, ReadFile::open(path));
  auto read = [&](uint64_t offset, std::span<std::byte> out) { return file->read(offset, out); };
  return read_program(read, file->size(), path.string());
}

}  // namespace argosy::executorch
