#include "io/torch_pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "base/checked_math.h"
#include "base/text.h"

namespace argosy {
namespace {

// What a state dict of 100,000 tensors stays far below.
constexpr size_t kMaxPickleStack = size_t{1} << 20;
constexpr size_t kMaxPickleObjects = size_t{1} << 22;

/// What a pickle may name.
enum class PickleGlobal : uint8_t {
  kOrderedDict,
  kTensor,
  kTensorOfDType,
  kParameter,
  kParameterWithState,
  kStorage,
  kBytes,
  kDType
};

struct KnownGlobal {
  std::string_view module, name;
  PickleGlobal what;
  DType dtype = DType::kU8;  // kStorage, kDType
};

constexpr std::array<KnownGlobal, 25> kKnownGlobals = {{
    {"collections", "OrderedDict", PickleGlobal::kOrderedDict},
    {"torch._utils", "_rebuild_tensor_v2", PickleGlobal::kTensor},
    {"torch._utils", "_rebuild_tensor_v3", PickleGlobal::kTensorOfDType},
    {"torch._utils", "_rebuild_parameter", PickleGlobal::kParameter},
    {"torch._utils", "_rebuild_parameter_with_state", PickleGlobal::kParameterWithState},
    {"torch", "FloatStorage", PickleGlobal::kStorage, DType::kF32},
    {"torch", "HalfStorage", PickleGlobal::kStorage, DType::kF16},
    {"torch", "BFloat16Storage", PickleGlobal::kStorage, DType::kBF16},
    {"torch", "DoubleStorage", PickleGlobal::kStorage, DType::kF64},
    {"torch", "ByteStorage", PickleGlobal::kStorage, DType::kU8},
    {"torch", "CharStorage", PickleGlobal::kStorage, DType::kI8},
    {"torch", "ShortStorage", PickleGlobal::kStorage, DType::kI16},
    {"torch", "IntStorage", PickleGlobal::kStorage, DType::kI32},
    {"torch", "LongStorage", PickleGlobal::kStorage, DType::kI64},
    {"torch", "BoolStorage", PickleGlobal::kStorage, DType::kBool},
    {"torch", "ComplexFloatStorage", PickleGlobal::kStorage, DType::kC64},
    {"torch.storage", "UntypedStorage", PickleGlobal::kBytes},
    {"torch", "uint16", PickleGlobal::kDType, DType::kU16},
    {"torch", "uint32", PickleGlobal::kDType, DType::kU32},
    {"torch", "uint64", PickleGlobal::kDType, DType::kU64},
    {"torch", "float8_e4m3fn", PickleGlobal::kDType, DType::kF8E4M3FN},
    {"torch", "float8_e5m2", PickleGlobal::kDType, DType::kF8E5M2},
    {"torch", "float8_e4m3fnuz", PickleGlobal::kDType, DType::kF8E4M3FNUZ},
    {"torch", "float8_e5m2fnuz", PickleGlobal::kDType, DType::kF8E5M2FNUZ},
    {"torch", "float8_e8m0fnu", PickleGlobal::kDType, DType::kF8E8M0FNU},
}};

enum class PickleKind : uint8_t {
  kMark,
  kNone,
  kBool,
  kInteger,
  kFloat,
  kText,
  kTuple,
  kList,
  kDict,
  kGlobal,
  kStorage,
  kTensor
};

std::string_view kind_text(PickleKind kind) {
  constexpr std::array<std::string_view, 12> kTexts = {"a mark",  "nothing", "a truth value", "an integer",
                                                       "a float", "a text",  "a tuple",       "a list",
                                                       "a dict",  "a name",  "a storage",     "a tensor"};
  return kTexts[static_cast<size_t>(kind)];
}

/// Small, since a pickle may hold millions. What is larger lies in the reader, by index.
struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  uint32_t length = 0;  // of a text
  int64_t number =
      0;  // an integer, the place of a text, or an index: of a container, a known global, a storage, a tensor
};

struct PickleStorage {
  std::optional<DType> dtype;  // none: bytes
  std::string_view key;
  int64_t bytes = 0;
};

class TorchPickleReader {
 public:
  TorchPickleReader(std::string_view pickle, std::string_view file_name) : bytes_(pickle), file_name_(file_name) {}

  Result<std::vector<TorchTensor>> read() {
    while (!is_done_) {
      ARGOSY_TRY(std::string_view op, take(1));
      ARGOSY_TRY_STATUS(run(op[0]));
      if (stack_.size() > kMaxPickleStack || containers_.size() + memo_.size() + tensors_.size() > kMaxPickleObjects) {
        return corrupt("it holds more objects than a state dict has");
      }
    }
    ARGOSY_TRY(PickleValue root, pop());
    if (root.kind != PickleKind::kDict) {
      return refuse(format("it holds {} where a dict of tensors is expected", kind_text(root.kind)),
                    "give what save_pretrained, or torch.save of a state dict, wrote");
    }
    return tensors_of(containers_[static_cast<size_t>(root.number)]);
  }

 private:
  using Values = std::vector<PickleValue>;

  tl::unexpected<Error> corrupt(std::string_view why) const {
    return fail(ErrorCode::kCorruptFile, format("{} is not a usable file of torch.save: {}", file_name_, why),
                "the file is damaged; download or write it again");
  }
  tl::unexpected<Error> refuse(std::string_view why, std::string hint) const {
    return fail(ErrorCode::kUnsupportedFeature, format("{} is not read: {}", file_name_, why), std::move(hint));
  }

  // ---- bytes ----

  Result<std::string_view> take(uint64_t count) {
    if (count > bytes_.size() - position_) return corrupt("its pickle ends early");
    std::string_view taken = bytes_.substr(position_, count);
    position_ += count;
    return taken;
  }

  /// An unsigned number of that many bytes, little-endian.
  Result<uint64_t> take_number(size_t size) {
    static_assert(std::endian::native == std::endian::little);
    ARGOSY_TRY(std::string_view raw, take(size));
    uint64_t number = 0;
    std::memcpy(&number, raw.data(), size);
    return number;
  }

  Result<std::string_view> take_line() {
    size_t end = bytes_.find('\n', position_);
    if (end == std::string_view::npos) return corrupt("its pickle ends early");
    ARGOSY_TRY(std::string_view line, take(end - position_));
    ++position_;
    return line;
  }

  Status push_text(size_t size_of_length) {
    ARGOSY_TRY(uint64_t length, take_number(size_of_length));
    ARGOSY_TRY(std::string_view text, take(length));
    if (!is_utf8(text)) return corrupt("a text is not UTF-8");
    push({PickleKind::kText, static_cast<uint32_t>(text.size()), text.data() - bytes_.data()});
    return {};
  }

  // ---- the stack ----

  void push(PickleValue value) { stack_.push_back(value); }
  void push_integer(int64_t number) { push({PickleKind::kInteger, 0, number}); }
  void push_container(PickleKind kind, Values values = {}) {
    push({kind, 0, static_cast<int64_t>(containers_.size())});
    containers_.push_back(std::move(values));
  }

  Result<PickleValue> pop() {
    if (stack_.empty() || stack_.back().kind == PickleKind::kMark)
      return corrupt("its pickle takes what it has not made");
    PickleValue value = stack_.back();
    stack_.pop_back();
    return value;
  }

  /// The last `count` values, in order.
  Result<Values> pop_values(size_t count) {
    Values values(count);
    while (count-- > 0) {
      ARGOSY_TRY(values[count], pop());
    }
    return values;
  }

  /// What lies above the last mark, which goes.
  Result<Values> pop_to_mark() {
    auto mark = std::ranges::find(stack_.rbegin(), stack_.rend(), PickleKind::kMark, &PickleValue::kind);
    if (mark == stack_.rend()) return corrupt("its pickle takes what it has not made");
    Values values(mark.base(), stack_.end());
    stack_.erase(mark.base() - 1, stack_.end());
    return values;
  }

  Result<Values*> top_container(PickleKind kind) {
    if (stack_.empty() || stack_.back().kind != kind)
      return corrupt(format("its pickle fills what is not {}", kind_text(kind)));
    return &containers_[static_cast<size_t>(stack_.back().number)];
  }

  std::string_view text_of(PickleValue value) const {
    return bytes_.substr(static_cast<size_t>(value.number), value.length);
  }
  const Values& values_of(PickleValue value) const { return containers_[static_cast<size_t>(value.number)]; }

  // ---- ops, by their codes in Python's pickletools ----

  Status run(char op) {
    switch (op) {
      case '\x80': {  // PROTO
        ARGOSY_TRY(uint64_t protocol, take_number(1));
        if (protocol > 5)
          return refuse(format("its pickle has protocol {}", protocol), "save it with the default protocol");
        return {};
      }
      case '\x95': return skip(8);  // FRAME
      case '.': is_done_ = true; return {};
      case '(': push({PickleKind::kMark}); return {};
      case 'N': push({PickleKind::kNone}); return {};
      case '\x88': push({PickleKind::kBool, 0, 1}); return {};
      case '\x89': push({PickleKind::kBool}); return {};
      case 'G': push({PickleKind::kFloat}); return skip(8);
      case 'K': return push_unsigned(1);
      case 'M': return push_unsigned(2);
      case 'J': {
        ARGOSY_TRY(uint64_t number, take_number(4));
        push_integer(static_cast<int32_t>(number));
        return {};
      }
      case '\x8a': return push_long();
      case 'X': return push_text(4);     // BINUNICODE
      case '\x8c': return push_text(1);  // SHORT_BINUNICODE
      case ')': push_container(PickleKind::kTuple); return {};
      case ']': push_container(PickleKind::kList); return {};
      case '}': push_container(PickleKind::kDict); return {};
      case '\x85': return push_tuple(pop_values(1));
      case '\x86': return push_tuple(pop_values(2));
      case '\x87': return push_tuple(pop_values(3));
      case 't': return push_tuple(pop_to_mark());
      case 'a': return fill(PickleKind::kList, pop_values(1));
      case 'e': return fill(PickleKind::kList, pop_to_mark());
      case 's': return fill(PickleKind::kDict, pop_values(2));
      case 'u': return fill(PickleKind::kDict, pop_to_mark());
      case 'q': return memoize(take_number(1));
      case 'r': return memoize(take_number(4));
      case '\x94': return memoize(memo_.size());
      case 'h': return recall(take_number(1));
      case 'j': return recall(take_number(4));
      case 'c': {  // GLOBAL
        ARGOSY_TRY(std::string_view module, take_line());
        ARGOSY_TRY(std::string_view name, take_line());
        return push_global(module, name);
      }
      case '\x93': {  // STACK_GLOBAL
        ARGOSY_TRY(Values names, pop_values(2));
        if (names[0].kind != PickleKind::kText || names[1].kind != PickleKind::kText)
          return corrupt("a name is not text");
        return push_global(text_of(names[0]), text_of(names[1]));
      }
      case 'Q': return push_storage();
      case 'R': return reduce();
      case 'b': return build();
      default: break;
    }
    return refuse(format("byte {} of its pickle is the op 0x{:02x}, which no state dict needs", position_ - 1,
                         static_cast<unsigned char>(op)),
                  "load it with PyTorch where you trust it, and save its state dict again");
  }

  Status skip(uint64_t count) {
    ARGOSY_TRY_STATUS(take(count));
    return {};
  }

  Status push_unsigned(size_t size) {
    ARGOSY_TRY(uint64_t number, take_number(size));
    push_integer(static_cast<int64_t>(number));
    return {};
  }

  /// LONG1: a length, then that many bytes in two's complement.
  Status push_long() {
    ARGOSY_TRY(uint64_t size, take_number(1));
    if (size > 8) return corrupt("a number has more than 64 bits");
    ARGOSY_TRY(uint64_t number, take_number(size));
    if (size > 0 && size < 8 && (number >> (size * 8 - 1)) != 0) number |= ~uint64_t{0} << (size * 8);
    push_integer(static_cast<int64_t>(number));
    return {};
  }

  Status push_tuple(Result<Values> values) {
    if (!values) return fail(std::move(values).error());
    push_container(PickleKind::kTuple, *std::move(values));
    return {};
  }

  Status fill(PickleKind kind, Result<Values> values) {
    if (!values) return fail(std::move(values).error());
    if (kind == PickleKind::kDict && values->size() % 2 != 0) return corrupt("a key of a dict has no value");
    ARGOSY_TRY(Values * container, top_container(kind));
    container->insert(container->end(), values->begin(), values->end());
    return {};
  }

  Status memoize(Result<uint64_t> index) {
    if (!index) return fail(std::move(index).error());
    if (stack_.empty() || stack_.back().kind == PickleKind::kMark)
      return corrupt("its pickle takes what it has not made");
    memo_[*index] = stack_.back();
    return {};
  }

  Status recall(Result<uint64_t> index) {
    if (!index) return fail(std::move(index).error());
    auto found = memo_.find(*index);
    if (found == memo_.end()) return corrupt(format("its pickle refers to object {}, which it has not made", *index));
    push(found->second);
    return {};
  }

  Status push_global(std::string_view module, std::string_view name) {
    for (size_t i = 0; i < kKnownGlobals.size(); ++i) {
      if (kKnownGlobals[i].module != module || kKnownGlobals[i].name != name) continue;
      push({PickleKind::kGlobal, 0, static_cast<int64_t>(i)});
      return {};
    }
    return refuse(
        format("it asks for {}, which no state dict of plain tensors needs", quoted(format("{}.{}", module, name))),
        "if you trust where it comes from, load it with PyTorch and save its tensors with safetensors");
  }

  std::optional<KnownGlobal> global_of(PickleValue value) const {
    if (value.kind != PickleKind::kGlobal) return std::nullopt;
    return kKnownGlobals[static_cast<size_t>(value.number)];
  }

  /// BINPERSID: ("storage", type, key, device, number of elements)
  Status push_storage() {
    ARGOSY_TRY(PickleValue id, pop());
    static constexpr std::array<PickleKind, 5> kKinds = {PickleKind::kText, PickleKind::kGlobal, PickleKind::kText,
                                                         PickleKind::kText, PickleKind::kInteger};
    if (id.kind != PickleKind::kTuple || !std::ranges::equal(values_of(id), kKinds, {}, &PickleValue::kind) ||
        text_of(values_of(id)[0]) != "storage") {
      return corrupt("it refers to something outside that is no storage");
    }
    const Values& parts = values_of(id);
    KnownGlobal type = *global_of(parts[1]);
    if (type.what != PickleGlobal::kStorage && type.what != PickleGlobal::kBytes) {
      return corrupt(format("a storage is of the type {}", type.name));
    }
    PickleStorage storage{std::nullopt, text_of(parts[2]), 0};
    if (type.what == PickleGlobal::kStorage) storage.dtype = type.dtype;
    auto size = checked_mul(parts[4].number, bits_of(type.dtype) / 8);
    if (parts[4].number < 0 || !size)
      return corrupt(format("storage {} has {} elements", quoted(storage.key), parts[4].number));
    storage.bytes = *size;
    push({PickleKind::kStorage, 0, static_cast<int64_t>(storages_.size())});
    storages_.push_back(storage);
    return {};
  }

  Status reduce() {
    ARGOSY_TRY(Values call, pop_values(2));
    std::optional<KnownGlobal> callee = global_of(call[0]);
    if (!callee || call[1].kind != PickleKind::kTuple) return corrupt("its pickle calls what is no function");
    const Values& arguments = values_of(call[1]);
    switch (callee->what) {
      case PickleGlobal::kOrderedDict:
        if (!arguments.empty()) break;
        push_container(PickleKind::kDict);
        return {};
      case PickleGlobal::kParameter:
        if (arguments.size() != 3 || arguments[0].kind != PickleKind::kTensor) break;
        push(arguments[0]);
        return {};
      case PickleGlobal::kParameterWithState:  // attributes, of which none is a weight
        if (arguments.size() != 4 || arguments[0].kind != PickleKind::kTensor) break;
        if (arguments[3].kind != PickleKind::kDict) break;
        push(arguments[0]);
        return {};
      case PickleGlobal::kTensor:
        if (arguments.size() != 6 && arguments.size() != 7) break;
        return push_tensor(arguments, std::nullopt);
      case PickleGlobal::kTensorOfDType: {
        if (arguments.size() != 7 && arguments.size() != 8) break;
        std::optional<KnownGlobal> dtype = global_of(arguments[6]);
        if (!dtype || dtype->what != PickleGlobal::kDType) break;
        return push_tensor(arguments, dtype->dtype);
      }
      default: break;
    }
    return corrupt(format("{}.{} has other arguments than torch.save writes", callee->module, callee->name));
  }

  /// (storage, offset, shape, strides, …); `dtype` if the storage has bytes only.
  Status push_tensor(const Values& arguments, std::optional<DType> dtype) {
    bool is_usual = arguments[0].kind == PickleKind::kStorage && arguments[1].kind == PickleKind::kInteger;
    std::optional<std::vector<int64_t>> shape = integers(arguments[2]), strides = integers(arguments[3]);
    if (!is_usual || !shape || !strides || shape->size() != strides->size()) {
      return corrupt("a tensor has no storage, or no shape with as many strides");
    }
    const PickleStorage& storage = storages_[static_cast<size_t>(arguments[0].number)];
    if (storage.dtype.has_value() == dtype.has_value())
      return corrupt("a tensor and its storage do not agree on the dtype");
    push({PickleKind::kTensor, 0, static_cast<int64_t>(tensors_.size())});
    tensors_.push_back({"", dtype ? *dtype : *storage.dtype, std::string(storage.key), storage.bytes,
                        arguments[1].number, *std::move(shape), *std::move(strides)});
    return {};
  }

  std::optional<std::vector<int64_t>> integers(PickleValue tuple) const {
    if (tuple.kind != PickleKind::kTuple) return std::nullopt;
    std::vector<int64_t> numbers;
    for (PickleValue value : values_of(tuple)) {
      if (value.kind != PickleKind::kInteger) return std::nullopt;
      numbers.push_back(value.number);
    }
    return numbers;
  }

  /// Attributes of a dict, such as the versions of modules that a state dict carries: no weights among them.
  Status build() {
    ARGOSY_TRY(PickleValue state, pop());
    if (stack_.empty() || stack_.back().kind != PickleKind::kDict || state.kind != PickleKind::kDict) {
      return corrupt("its pickle gives attributes to what is no dict");
    }
    return {};
  }

  Result<std::vector<TorchTensor>> tensors_of(const Values& pairs) const {
    std::vector<TorchTensor> result;
    result.reserve(pairs.size() / 2);
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
      if (pairs[i].kind != PickleKind::kText)
        return refuse(format("a key of its dict is {}", kind_text(pairs[i].kind)), kPlain);
      std::string_view name = text_of(pairs[i]);
      if (pairs[i + 1].kind != PickleKind::kTensor) {
        return refuse(format("{} is {} where a tensor is expected", quoted(name), kind_text(pairs[i + 1].kind)),
                      kPlain);
      }
      if (name.empty()) return corrupt("a tensor has an empty name");
      result.push_back(tensors_[static_cast<size_t>(pairs[i + 1].number)]);
      result.back().name = name;
    }
    return result;
  }

  static constexpr const char* kPlain = "save the model's state dict alone: a dict of names and tensors";

  std::string_view bytes_, file_name_;
  size_t position_ = 0;
  bool is_done_ = false;
  Values stack_;
  std::vector<Values> containers_;  // of tuples, lists and dicts; dicts have keys and values in turn
  std::vector<PickleStorage> storages_;
  std::vector<TorchTensor> tensors_;  // without names
  std::unordered_map<uint64_t, PickleValue> memo_;
};

}  // namespace

Result<std::vector<TorchTensor>> read_torch_pickle(std::string_view pickle, std::string_view file_name) {
  return TorchPickleReader(pickle, file_name).read();
}

}  // namespace argosy
