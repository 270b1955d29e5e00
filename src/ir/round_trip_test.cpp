// parse(print(p)) is p: for random programs with everything that a program can hold, and in linear time.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <ctime>
#include <limits>
#include <random>

#include "base/text.h"
#include "ir/rewriter.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace argosy {
namespace {

constexpr size_t kDTypeCount = static_cast<size_t>(DType::kI7) + 1;

constexpr std::string_view kSchemas[] = {
    "aten::f(Tensor self, Tensor? other=None, *, Scalar alpha=1) -> Tensor",
    "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
    "aten::index(Tensor self, Tensor?[] indices, int[2] pad=1) -> Tensor",
    "aten::split(Tensor self, SymInt[] sizes, float[] d=[1., -0.], bool[] b=[]) -> Tensor[]",
    "aten::size(Tensor self, str mode=\"a # b\", str[] names=[], int[][]? pads=None) -> SymInt",
    "aten::kinds(ScalarType? t=None, Device? d=None, Layout? l=strided, MemoryFormat? m=contiguous_format) -> ()",
    "custom::anything(Any a, Any[] b, ...) -> Any[]",
};

/// Makes programs up. Everything follows from the seed.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Program program() {
    for (std::string_view schema : kSchemas) ops_.push_back(program_.schemas.add(schema).value());
    for (size_t i = pick(3); i > 0; --i) program_.attributes[text()] = text();
    for (size_t i = pick(6); i > 0; --i) add_weight();
    for (size_t i = 1 + pick(3); i > 0; --i) add_component();
    return std::move(program_);
  }

 private:
  size_t pick(size_t count) { return random_() % count; }
  bool flip() { return pick(2) == 0; }

  std::string text() {
    static const std::string kTexts[] = {
        "",        "model.norm", "a b", "q\"uote", "back\\slash", "li\nne", "\x01\x7f", "\xff\xc3",
        "é\u4e2d", "x",          "0",   "-",       "#",           "return", "none",     std::string("nu\0l", 4)};
    return kTexts[pick(std::size(kTexts))] + (flip() ? std::to_string(pick(1000)) : "");
  }

  double real() {
    static const double kReals[] = {0.0,
                                    -0.0,
                                    1.0,
                                    0.1,
                                    -1e300,
                                    5e-324,
                                    std::numeric_limits<double>::infinity(),
                                    -std::numeric_limits<double>::infinity(),
                                    std::numeric_limits<double>::quiet_NaN(),
                                    -std::numeric_limits<double>::quiet_NaN(),
                                    1.5};
    if (flip()) return kReals[pick(std::size(kReals))];
    return std::bit_cast<double>(random_());
  }

  int64_t integer() {
    static const int64_t kIntegers[] = {0, 1, -1, INT64_MIN, INT64_MAX, 768};
    return flip() ? kIntegers[pick(std::size(kIntegers))] : static_cast<int64_t>(random_());
  }

  std::string unique(const std::string& prefix) { return format("{}{}", prefix, counter_++); }

  void add_weight() {
    Weight weight;
    weight.name = unique(text());
    weight.kind = static_cast<WeightKind>(pick(4));
    if (!program_.weights.empty() && pick(3) == 0) {
      weight.tied_to = WeightId{static_cast<uint32_t>(pick(program_.weights.size()))};
      weight.dtype = program_[weight.tied_to].dtype;
      weight.shape = program_[weight.tied_to].shape;
    } else {
      weight.dtype = flip() ? DType::kF32 : DType::kBF16;
      for (size_t i = pick(4); i > 0; --i) weight.shape.push_back(static_cast<int64_t>(pick(5)));
    }
    weight.source = shape_only(weight.dtype, weight.shape, weight.name).value();
    program_.weights.push_back(std::move(weight));
  }

  void add_component() {
    Component component;
    component.name = program_.components.empty() && flip() ? "model" : unique(text());
    component.symbols = std::make_shared<SymContext>();
    symbols_ = component.symbols.get();
    for (size_t i = 1 + pick(3); i > 0; --i) {
      SymAssumptions assumptions;
      assumptions.is_positive = flip();
      assumptions.is_nonnegative = flip();
      assumptions.is_integer = pick(5) != 0;
      SymExpr symbol = symbols_->symbol(unique(pick(4) == 0 ? "odd `name, ]" : "s"), assumptions);
      if (assumptions.is_integer && flip()) {
        symbols_->set_range(symbol, {flip() ? SymRange::kNoMin : 1, flip() ? SymRange::kNoMax : 128});
      }
      if (flip()) component.dim_names[std::string(symbol.symbol_name())] = text();
    }
    for (size_t i = pick(3); i > 0; --i) component.attributes[text()] = text();
    for (size_t i = pick(3); i > 0; --i) {
      SymExpr condition = flip() ? SymExpr() : symbols_->compare(SymKind::kLe, expression(), expression());
      component.guards.push_back({text(), condition});
    }
    for (size_t i = pick(2); i > 0; --i)
      component.specialized.push_back({text(), static_cast<int>(pick(4)), integer(), text()});
    if (flip()) component.dim_names[unique("no symbol ")] = text();
    size_t branches = pick(3);
    component.graphs.resize(1 + 2 * branches);
    for (size_t i = 0; i < component.graphs.size(); ++i) fill(component.graphs[i], i, branches);
    describe_interface(component);
    program_.components.push_back(std::move(component));
  }

  SymExpr expression() {
    std::vector<SymExpr> symbols = symbols_->symbols();
    SymExpr symbol = symbols[pick(symbols.size())];
    switch (pick(6)) {
      case 0: return symbols_->integer(static_cast<int64_t>(pick(1000)));
      case 1: return symbol;
      case 2: return symbols_->add(symbols_->mul(symbols_->integer(3), symbol), symbols_->integer(1));
      case 3: return symbols_->floor_div(symbol, symbols_->integer(2));
      case 4: return symbols_->max(symbol, symbols_->integer(8));
      default: return symbols_->mod(symbols_->add(symbol, symbols[0]), symbols_->integer(7));
    }
  }

  TensorType tensor() {
    TensorType type{.dtype = static_cast<DType>(pick(kDTypeCount)), .shape = {}, .strides = {}};
    for (size_t i = pick(4); i > 0; --i) type.shape.push_back(expression());
    if (pick(3) == 0) {
      for (size_t i = 0; i < type.shape.size(); ++i) type.strides.push_back(expression());
    }
    return type;
  }

  NewValue value(ValueType type) {
    NewValue value{.name = pick(4) == 0 ? unique(text()) : unique("v"), .type = std::move(type)};
    if (flip()) value.storage = StorageId{static_cast<uint32_t>(pick(20))};
    return value;
  }

  // Graph 0 calls the others, two by each of its branches; those take one tensor and give it back.
  void fill(Graph& graph, size_t index, size_t branches) {
    Rewriter rewriter(graph);
    tensors_ = {rewriter.add_input(value(tensor()))};
    numbers_.clear();
    if (index == 0) {
      for (size_t i = pick(4); i > 0; --i) tensors_.push_back(rewriter.add_input(value(tensor())));
    }
    for (size_t i = 0; i < program_.weights.size(); ++i) {
      if (flip()) bind(rewriter, WeightId{static_cast<uint32_t>(i)});
    }
    for (size_t i = pick(12); i > 0; --i) add_node(rewriter);
    for (size_t i = 0; index == 0 && i < branches; ++i) {
      auto first = static_cast<uint32_t>(1 + 2 * i);
      std::vector<Argument> arguments = {true, GraphId{first}, GraphId{first + 1}, ValueList{any_tensor()}};
      rewriter.create(program_.schemas.find("higher_order.cond").value(), arguments, {value(tensor())}, location());
    }
    std::vector<Argument> outputs = {any_tensor()};
    for (size_t i = pick(3); index == 0 && i > 0; --i) outputs.push_back(anything(0));
    rewriter.set_outputs(std::move(outputs));
  }

  void bind(Rewriter& rewriter, WeightId id) {
    TensorType type{.dtype = program_[id].dtype, .shape = {}, .strides = {}};
    for (int64_t dim : program_[id].shape) type.shape.push_back(symbols_->integer(dim));
    if (flip()) type.strides.assign(type.shape.size(), symbols_->integer(1));
    tensors_.push_back(rewriter.add_weight(value(type), id));
  }

  ValueId any_tensor() { return tensors_[pick(tensors_.size())]; }

  ValueList tensors(bool with_none) {
    ValueList list;
    for (size_t i = pick(4); i > 0; --i) list.push_back(with_none && flip() ? ValueId{} : any_tensor());
    return list;
  }

  IntList integers() {
    IntList list;
    for (size_t i = pick(4); i > 0; --i) {
      if (numbers_.empty() || flip()) {
        list.push_back(integer());
      } else {
        list.push_back(numbers_[pick(numbers_.size())]);
      }
    }
    return list;
  }

  template <class List, class Item>
  List list_of(const Item& item) {
    List list;
    for (size_t i = pick(3); i > 0; --i) list.push_back(item());
    return list;
  }

  Argument anything(int depth) {
    switch (pick(depth > 3 ? 15 : 16)) {
      case 0: return None{};
      case 1: return flip();
      case 2: return integer();
      case 3: return real();
      case 4: return std::complex<double>(real(), real());
      case 5: return text();
      case 6: return static_cast<DType>(pick(kDTypeCount));
      case 7: return Device{text(), flip() ? std::optional<int64_t>(integer()) : std::nullopt};
      case 8: return static_cast<TensorLayout>(pick(7));
      case 9: return static_cast<MemoryFormat>(pick(4));
      case 10: return any_tensor();
      case 11: return integers();
      case 12: return list_of<BoolList>([&] { return flip(); });
      case 13: return list_of<DoubleList>([&] { return real(); });
      case 14: return flip() ? Argument(list_of<StringList>([&] { return text(); })) : Argument(tensors(true));
      default: {
        ArgumentList list;
        for (size_t i = pick(4); i > 0; --i) list.items.push_back(anything(depth + 1));
        return list;
      }
    }
  }

  Argument list_of_anything() {
    switch (pick(3)) {
      case 0: return integers();
      case 1: return tensors(true);
      default: return ArgumentList{{anything(1), anything(1)}};
    }
  }

  LocationId location() {
    if (flip()) return {};
    return program_.locations.intern({.file = flip() ? text() : "",
                                      .line = static_cast<int>(pick(3)),
                                      .module_path = text(),
                                      .class_name = flip() ? text() : "",
                                      .call_index = static_cast<int>(pick(2))});
  }

  Argument sometimes(Argument argument) { return flip() ? Argument(None{}) : std::move(argument); }

  void add_node(Rewriter& rewriter) {
    size_t op = pick(ops_.size());
    std::vector<Argument> arguments;
    std::vector<NewValue> outputs;
    switch (op) {
      case 0:
        arguments = {any_tensor(), sometimes(any_tensor()), flip() ? Argument(int64_t{1}) : Argument(real())};
        break;
      case 1: arguments = {tensors(false), flip() ? int64_t{0} : integer()}; break;
      case 2: arguments = {any_tensor(), tensors(true), flip() ? IntList{int64_t{1}, int64_t{1}} : integers()}; break;
      case 3:
        arguments = {any_tensor(), integers(), flip() ? DoubleList{1.0, -0.0} : DoubleList{1.0, 0.0},
                     list_of<BoolList>([&] { return flip(); })};
        break;
      case 4:
        arguments = {any_tensor(), flip() ? std::string("a # b") : text(), list_of<StringList>([&] { return text(); }),
                     sometimes(ArgumentList{{integers(), integers()}})};
        break;
      case 5:
        arguments = {sometimes(DType::kI4), sometimes(Device{"cuda", 1}), sometimes(TensorLayout::kStrided),
                     sometimes(MemoryFormat::kPreserve)};
        break;
      default:
        arguments = {anything(0), list_of_anything()};
        for (size_t i = pick(3); i > 0; --i) arguments.push_back(anything(0));
    }
    if (op <= 2) outputs.push_back(value(tensor()));
    if (op == 3) {
      for (size_t i = pick(4); i > 0; --i) outputs.push_back(value(tensor()));
    }
    if (op == 4) outputs.push_back(value(SymType{SymType::Kind::kInt, flip() ? expression() : SymExpr()}));
    if (op == 6) {
      outputs.push_back(value(SymType{SymType::Kind::kFloat, {}}));
      outputs.push_back(
          value(SymType{SymType::Kind::kBool, symbols_->compare(SymKind::kGt, expression(), expression())}));
    }
    NodeId node = rewriter.create(ops_[op], std::move(arguments), std::move(outputs), location());
    for (ValueId output : rewriter.graph()[node].outputs) {
      const Value& made = rewriter.graph()[output];
      if (made.tensor() != nullptr) {
        tensors_.push_back(output);
      } else if (made.number()->kind == SymType::Kind::kInt) {
        numbers_.push_back(output);
      }
    }
  }

  void describe_interface(Component& component) {
    bool is_default = flip();
    for (ValueId id : component.entry().inputs()) {
      component.inputs.push_back({is_default ? component.entry()[id].name : unique(text()), id, None{}});
    }
    component.outputs.resize(component.entry().outputs().size());
    if (is_default) return;
    component.inputs.push_back({unique("constant"), {}, flip() ? Argument(real()) : Argument(text())});
    component.outputs[0] = {OutputKind::kInputMutation, text(), component.inputs[0].name};
  }

  std::mt19937_64 random_;
  Program program_;
  std::vector<OpId> ops_;
  SymContext* symbols_ = nullptr;
  std::vector<ValueId> tensors_, numbers_;
  size_t counter_ = 0;
};

TEST(RoundTripTest, random_programs_survive) {
  size_t nodes = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Program program = Generator(seed).program();
    std::string text = print(program);
    for (const Error& error : verify(program).errors)
      ADD_FAILURE() << "seed " << seed << "\n" << to_text(error) << text;
    Result<Program> again = parse(text);
    ASSERT_TRUE(again) << "seed " << seed << "\n" << to_text(again.error()) << text;
    ASSERT_EQ(difference(program, *again), std::nullopt) << "seed " << seed << "\n" << text;
    ASSERT_EQ(print(*again), text) << "seed " << seed;
    ASSERT_TRUE(verify_first(*again)) << "seed " << seed;
    for (const Graph& graph : program.components[0].graphs) nodes += graph.node_count();
  }
  EXPECT_GT(nodes, 1000u);
}

// A chain like that of a decoder: matrix products, additions, sizes, locations.
std::string long_text(size_t nodes) {
  std::string text =
      "schema aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n"
      "schema aten::sym_size.int(Tensor self, int dim) -> SymInt\n"
      "schema aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)\n"
      "symbol s0 positive in [1, 128]\n"
      "graph (%v0: f32[s0, 16, 768] storage 0) {\n";
  for (size_t i = 1; i <= nodes; ++i) {
    std::string place = format("loc(\"model.layers.{}.mlp\", \"LlamaMLP\", \"modeling_llama.py\":{})", i / 50, i % 50);
    if (i % 10 == 0) {
      text += format("  %n{}: int(s0) = aten.sym_size.int(self=%v{}, dim=0) {}\n", i, i - 1, place);
      text += format("  %v{}: f32[s0, 16, 768] storage {} = aten.view.default(self=%v{}, size=[%n{}, 16, 768]) {}\n", i,
                     i - 1, i - 1, i, place);
    } else {
      text += format("  %v{}: f32[s0, 16, 768] storage {} = aten.add.Tensor(self=%v{}, other=%v{}) {}\n", i, i, i - 1,
                     i / 2, place);
    }
  }
  return text + format("  return %v{}\n}}\n", nodes);
}

// CPU time to read, verify and print a text so many times. The programs stay alive together, so that few large ones
// and many small ones touch the same amount of memory.
double seconds_for(const std::string& text, size_t times) {
  std::vector<Program> programs;
  std::clock_t start = std::clock();
  for (size_t i = 0; i < times; ++i) {
    programs.push_back(parse(text).value());
    EXPECT_EQ(verify(programs.back()).errors.size(), 0u);
    EXPECT_TRUE(print(programs.back()) == text);  // not EXPECT_EQ: a diff of so long texts would take for ever
  }
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(RoundTripTest, cost_is_linear_in_nodes) {
  std::string few = long_text(4'000);
  std::string many = long_text(40'000);
  // The least of some runs, taken in turns: what else the machine does only adds.
  double small = std::numeric_limits<double>::max();
  double large = std::numeric_limits<double>::max();
  for (int i = 0; i < 3; ++i) {
    small = std::min(small, seconds_for(few, 10) / 10);
    large = std::min(large, seconds_for(many, 1));
  }
  EXPECT_LE(large, 13 * small);
  RecordProperty("seconds_of_40000_nodes", std::to_string(large));
}

TEST(RoundTripTest, long_graphs_survive) {
  Program program = parse(long_text(10'000)).value();
  EXPECT_EQ(difference(program, parse(print(program)).value()), std::nullopt);
}

}  // namespace
}  // namespace argosy
