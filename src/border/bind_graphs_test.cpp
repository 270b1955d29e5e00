#include "border/bind_graphs.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/text.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/eliminate_dead_code.h"
#include "passes/pipeline.h"

namespace argosy {
namespace {

constexpr std::string_view kSchemas = R"(
schema aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
schema aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
schema aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor
schema aten::neg(Tensor self) -> Tensor
schema aten::sym_size.int(Tensor self, int dim) -> SymInt
schema aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor
weight @w: f32[8, 8] parameter
)";

/// Components with these bodies, all over the same dims.
Program program_of(const std::vector<std::pair<std::string, std::string>>& components) {
  std::string text(kSchemas);
  for (const auto& [name, body] : components) {
    text += format(R"(component {} {{
  symbol b positive as "batch"
  symbol s positive as "sequence"
  symbol p nonnegative as "past"
  symbol n nonnegative
  symbol m nonnegative
{}
}}
)",
                   name, body);
  }
  auto program = parse(text);
  EXPECT_TRUE(program.has_value()) << (program ? "" : program.error().message);
  return program ? *std::move(program) : Program();
}

Program program_of(const std::string& body) { return program_of({{"model", body}}); }

/// The program with one graph of a component, edited, verified and without dead code. On an error it has no components.
Program edited(Program program, std::vector<Edit> edits, const std::string& component = "model") {
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  Pipeline pipeline;
  pipeline.add(bind_graphs({{"model.onnx", component, std::move(edits)}}));
  pipeline.add(eliminate_dead_code());
  auto done = pipeline.run(program, context);
  if (!done) return {};
  Status sound = verify_first(program);
  EXPECT_TRUE(sound.has_value()) << (sound ? "" : sound.error().message) << print(program);
  return program;
}

bool is_refused(Program program, std::vector<Edit> edits, const std::string& component = "model") {
  return edited(std::move(program), std::move(edits), component).components.empty();
}

/// "x: f32[b, 8], y: i64[b]", as callers see it.
std::string inputs_of(const Program& program) {
  const Component& component = program.components.at(0);
  std::vector<std::string> texts;
  for (const InputSpec& input : component.inputs) {
    const TensorType& type = *component.entry()[input.value].tensor();
    std::vector<std::string> sizes;
    for (SymExpr size : type.shape) sizes.push_back(component.symbols->to_text(size));
    texts.push_back(format("{}: {}[{}]", input.name, to_text(type.dtype), join(sizes, ", ")));
  }
  return join(texts, ", ");
}

std::string outputs_of(const Program& program) {
  const Component& component = program.components.at(0);
  std::vector<std::string> texts;
  for (size_t i = 0; i < component.outputs.size(); ++i) {
    std::vector<std::string> sizes;
    const TensorType& type = *component.entry()[*component.entry().outputs()[i].get_if<ValueId>()].tensor();
    for (SymExpr size : type.shape) sizes.push_back(component.symbols->to_text(size));
    texts.push_back(format("{}[{}]", component.outputs[i].name, join(sizes, ", ")));
  }
  return join(texts, ", ");
}

/// The ops of the graph, in order.
std::string ops_of(const Program& program, size_t graph = 0) {
  const Graph& nodes = program.components.at(0).graphs.at(graph);
  std::vector<std::string> ops;
  for (NodeId id : nodes.nodes()) {
    std::string op = program.schemas[nodes[id].op].name;
    if (op != "aten.sym_size.int") ops.push_back(op);
  }
  return join(ops, " ");
}

constexpr const char* kState = R"(  output user "logits"
  output user "present"
  graph (%ids: i64[b, s], %mask: i64[b, p + s], %past: f32[b, 2, 4]) {
    %y: f32[b, 2, 4] = aten.neg.default(self=%past)
    %z: f32[b, 2, 4] = aten.neg.default(self=%y)
    return %z, %y
  })";

TEST(Border, renames_orders_and_drops_what_callers_see) {
  Program made = edited(program_of(kState), {RenameInput{"past", "past.0"}, RenameOutput{"present", "present.0"},
                                             OrderInputs{{"past.0", "ids"}}, RenameDim{"batch", "rows"},
                                             RenameDim{"no_such_dim", "x"}, DropInput{"ids"}, DropOutput{"logits"}});
  EXPECT_EQ(inputs_of(made), "mask: i64[b, p + s], past.0: f32[b, 2, 4]");
  EXPECT_EQ(outputs_of(made), "present.0[b, 2, 4]");
  EXPECT_EQ(ops_of(made), "aten.neg.default");
  EXPECT_EQ(made.components[0].dim_names.at("b"), "rows");
}

TEST(Border, one_component_becomes_several_graphs) {
  Program program = program_of(kState);
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  auto done = bind_graphs({{"a", "model", {}}, {"b", "model", {DropOutput{"logits"}}}}).run(program, context);
  ASSERT_TRUE(done.has_value());
  ASSERT_EQ(program.components.size(), 2u);
  EXPECT_EQ(program.components[1].name, "model_2");
  EXPECT_EQ(program.components[0].outputs.size(), 2u);
  EXPECT_EQ(program.components[1].outputs.size(), 1u);
}

constexpr const char* kProducts = R"(  output user "y"
  graph (%x: f32[b, s, 8]) weights (%w = @w) {
    %one: f32[b, s, 8] = aten.linear.default(input=%x, weight=%w)
    %two: f32[b, s, 8] = aten.linear.default(input=%one, weight=%w)
    %y: f32[b, s, 8] = aten.neg.default(self=%two)
    return %y
  })";

TEST(Border, attaches_adapters_to_every_use_of_a_weight) {
  Program program = program_of(kProducts);
  program.weights[0].name = "layer.weight";
  Program made = edited(program, {AttachAdapters{{"layer"}}});
  ASSERT_EQ(made.components.size(), 1u);
  EXPECT_EQ(inputs_of(made),
            "x: f32[b, s, 8], layer.lora_A.weight: f32[8, lora_rank_1], layer.lora_B.weight: f32[lora_rank_1, 8]");
  const std::string once = "aten.linear.default aten.matmul.default aten.matmul.default aten.add.Tensor ";
  EXPECT_EQ(ops_of(made), once + once + "aten.neg.default");
  EXPECT_EQ(outputs_of(made), "y[b, s, 8]");
}

TEST(Border, rejects_adapters_of_weights_that_are_not_multiplied_with) {
  Program program = program_of(kProducts);
  EXPECT_TRUE(is_refused(program, {AttachAdapters{{"layer"}}}));
}

TEST(Border, rejects_names_that_are_not_there_or_taken) {
  EXPECT_TRUE(is_refused(program_of(kState), {RenameInput{"x", "y"}}));
  EXPECT_TRUE(is_refused(program_of(kState), {RenameInput{"ids", "mask"}}));
  EXPECT_TRUE(is_refused(program_of(kState), {RenameInput{"ids", "present"}}));
  EXPECT_TRUE(is_refused(program_of(kState), {RenameOutput{"x", "y"}}));
  EXPECT_TRUE(is_refused(program_of(kState), {RenameOutput{"logits", "present"}}));
  EXPECT_TRUE(is_refused(program_of(kState), {DropOutput{"x"}}));
  EXPECT_TRUE(is_refused(program_of(kState), {OrderInputs{{"x"}}}));
  EXPECT_TRUE(is_refused(program_of(kState), {RenameDim{"batch", "sequence"}}));
}

TEST(Border, drops_an_input_that_is_read_for_sizes_that_others_have) {
  const char* sized = R"(  output user "y"
  output user "size"
  output user "other"
  graph (%x: f32[b, 8], %z: f32[b, 8], %u: f32[n, 8]) {
    %size: int(b) = aten.sym_size.int(self=%x, dim=0)
    %other: int(n) = aten.sym_size.int(self=%u, dim=0)
    %y: f32[b, 8] = aten.neg.default(self=%z)
    return %y, %size, %other
  })";
  Program made = edited(program_of(sized), {DropInput{"x"}});
  ASSERT_EQ(made.components.size(), 1u);
  EXPECT_EQ(inputs_of(made), "z: f32[b, 8], u: f32[n, 8]");
  EXPECT_TRUE(is_refused(program_of(sized), {DropInput{"u"}}));
  EXPECT_TRUE(is_refused(program_of(sized), {DropInput{"z"}}));
}

TEST(Border, widens_a_state_for_callers) {
  Program made = edited(program_of(kState), {WidenState{"past", "present", 6}});
  EXPECT_EQ(inputs_of(made), "ids: i64[b, s], mask: i64[b, p + s], past: f32[b, 2, 6]");
  EXPECT_EQ(outputs_of(made), "logits[b, 2, 4], present[b, 2, 6]");
  EXPECT_EQ(ops_of(made), "aten.slice.Tensor aten.neg.default aten.neg.default aten.constant_pad_nd.default");
  EXPECT_TRUE(is_refused(program_of(kState), {WidenState{"past", "present", 3}}));
  EXPECT_TRUE(is_refused(program_of(kState), {WidenState{"mask", "present", 8}}));
}

TEST(Border, postpones_an_output_until_another_is_known) {
  Program made = edited(program_of(kState), {PostponeOutput{"present", "logits"}, RenameOutput{"present", "out"}});
  EXPECT_EQ(ops_of(made), "aten.neg.default aten.neg.default argosy.after.default");
  EXPECT_EQ(outputs_of(made), "logits[b, 2, 4], out[b, 2, 4]");
  EXPECT_TRUE(is_refused(program_of(kState), {PostponeOutput{"present", "x"}}));
}

TEST(Border, logits_of_the_last_token_are_computed_from_that_token_alone) {
  const char* head = R"(  output user "logits"
  output user "hidden"
  graph (%x: f32[b, s, 8], %mask: i64[b, p + s]) weights (%w = @w) {
    %hidden: f32[b, s, 8] = aten.neg.default(self=%x)
    %logits: f32[b, s, 8] = aten.linear.default(input=%hidden, weight=%w)
    return %logits, %hidden
  })";
  Program made = edited(program_of(head), {KeepLastLogits{"logits", "mask"}});
  EXPECT_EQ(outputs_of(made), "logits[b, 1, 8], hidden[b, s, 8]");
  EXPECT_TRUE(ops_of(made).ends_with("aten.index.Tensor aten.unsqueeze.default aten.linear.default")) << ops_of(made);
  // Where something else reads them, all are computed.
  const char* read_twice = R"(  output user "logits"
  output user "other"
  graph (%x: f32[b, s, 8], %mask: i64[b, p + s]) weights (%w = @w) {
    %logits: f32[b, s, 8] = aten.linear.default(input=%x, weight=%w)
    %other: f32[b, s, 8] = aten.neg.default(self=%logits)
    return %logits, %other
  })";
  made = edited(program_of(read_twice), {KeepLastLogits{"logits", "mask"}});
  EXPECT_EQ(outputs_of(made), "logits[b, 1, 8], other[b, s, 8]");
  EXPECT_EQ(outputs_of(edited(program_of(kState), {KeepLastLogits{"logits", "mask"}})),
            "logits[b, 1, 4], present[b, 2, 4]");
  EXPECT_TRUE(is_refused(program_of(kState), {KeepLastLogits{"logits", "past"}}));
}

TEST(Border, an_empty_state_may_have_any_sizes) {
  Program made = edited(program_of(kState), {AcceptEmptyState{"past", 1}});
  EXPECT_EQ(inputs_of(made), "ids: i64[b, s], mask: i64[b, p + s], past: f32[b, any, any_1]");
  EXPECT_EQ(ops_of(made), "aten.reshape.default aten.neg.default aten.neg.default");
  EXPECT_TRUE(is_refused(program_of(kState), {AcceptEmptyState{"past", 3}}));
}

TEST(Border, casts_and_fills_what_callers_give) {
  const char* masked = R"(  output user "y"
  graph (%ids: i64[b, s], %mask: i64[n, m]) {
    %size: int(m) = aten.sym_size.int(self=%mask, dim=1)
    %y: i64[n, m] = aten.neg.default(self=%mask)
    return %y
  })";
  Program cast = edited(program_of(masked), {CastInput{"mask", "bool"}});
  EXPECT_EQ(inputs_of(cast), "ids: i64[b, s], mask: bool[n, m]");
  EXPECT_EQ(ops_of(cast), "aten.to.dtype aten.neg.default");
  EXPECT_TRUE(is_refused(program_of(masked), {CastInput{"mask", "no_dtype"}}));
  // Sizes that the input alone had are those of the other.
  Program filled = edited(program_of(masked), {FillInput{"mask", "ids"}});
  EXPECT_EQ(inputs_of(filled), "ids: i64[b, s]");
  EXPECT_EQ(outputs_of(filled), "y[b, s]");
  EXPECT_EQ(ops_of(filled), "aten.full.default aten.neg.default");
  EXPECT_TRUE(is_refused(program_of(masked), {FillInput{"mask", "x"}}));
}

TEST(Border, computes_token_types_from_ids) {
  const char* typed = R"(  output user "y"
  graph (%mask: i64[b, p + s], %types: i64[b, p + s], %past: f32[b, p, 4]) {
    %y: i64[b, p + s] = aten.add.Tensor(self=%mask, other=%types)
    return %y
  })";
  for (std::optional<int64_t> token : {std::optional<int64_t>(), std::optional<int64_t>(7)}) {
    Program made = edited(program_of(typed), {ComputeTokenTypes{"types", "mask", "ids", token}});
    EXPECT_EQ(inputs_of(made), "mask: i64[b, p + s], past: f32[b, p, 4], ids: i64[b, s]");
    EXPECT_EQ(outputs_of(made), "y[b, p + s]");
  }
  EXPECT_TRUE(is_refused(program_of(typed), {ComputeTokenTypes{"types", "x", "ids", 7}}));
}

TEST(Border, computes_positions_of_patches_from_a_grid) {
  const char* patches = R"(  output user "y"
  output user "z"
  output user "w"
  output user "v"
  output user "i"
  output user "j"
  graph (%pixel_values: f32[n, 8], %position_ids: i64[n, 2], %cu_seqlens: i32[m], %window_index: i64[n // 4],
         %cu_window_seqlens: i32[p], %interpolation_indices: i64[n, 4], %interpolation_weights: f32[n, 4]) {
    %y: i64[n, 2] = aten.neg.default(self=%position_ids)
    %z: i32[m] = aten.neg.default(self=%cu_seqlens)
    %w: i64[n // 4] = aten.neg.default(self=%window_index)
    %v: i32[p] = aten.neg.default(self=%cu_window_seqlens)
    %i: i64[n, 4] = aten.neg.default(self=%interpolation_indices)
    %j: f32[n, 4] = aten.neg.default(self=%interpolation_weights)
    return %y, %z, %w, %v, %i, %j
  })";
  EXPECT_TRUE(is_refused(program_of(patches), {ComputePatchPositions{"grid", 2, 0, 8}}));  // windows of no size
  EXPECT_TRUE(is_refused(program_of(patches), {ComputePatchPositions{"grid", 2, 4, 0}}));  // no table of positions
  EXPECT_TRUE(is_refused(program_of(patches), {ComputePatchPositions{"pixel_values", 2, 4, 8}}));
  Program made = edited(program_of(patches), {ComputePatchPositions{"grid", 2, 4, 8}});
  EXPECT_EQ(inputs_of(made), "pixel_values: f32[n, 8], grid: i64[1, 3]");
  EXPECT_TRUE(outputs_of(made).starts_with("y[n, 2], z[frames + 1], w[n // 4], v[")) << outputs_of(made);
}

TEST(Border, groups_rows_for_callers) {
  const char* rows = R"(  output user "out"
  graph (%in: f32[4*b, 8], %x: f32[b]) {
    %y: f32[4*b, 8] = aten.neg.default(self=%in)
    return %y
  })";
  Program made = edited(program_of(rows), {GroupRows{"out", 4}, AcceptGroupedRows{"in"}});
  EXPECT_EQ(outputs_of(made), "out[b, 4, 8]");
  EXPECT_EQ(made.components[0].attributes.at(std::string(kAnyRank)), "in");
  EXPECT_TRUE(is_refused(program_of(rows), {GroupRows{"out", 0}}));
  EXPECT_TRUE(is_refused(program_of(rows), {AcceptGroupedRows{"x"}}));
}

TEST(Border, features_travel_side_by_side) {
  const char* encoder = R"(  output user "features"
  output user "deep.0"
  graph (%a: f32[n, 8], %b: f32[n, 8]) { return %a, %b })";
  EXPECT_EQ(outputs_of(edited(program_of(encoder), {JoinOutputs{{"features", "deep.0"}}})), "features[n, 16]");
  EXPECT_TRUE(is_refused(program_of(encoder), {JoinOutputs{{"features", "deep.1"}}}));

  const char* embedding = R"(  output user "embeds"
  output user "mask"
  output user "more"
  graph (%x: f32[b, s, 8], %m: bool[b, s], %features: f32[n, 8], %deep: f32[m, 8]) {
    %y: f32[n, 8] = aten.neg.default(self=%features)
    return %x, %m, %deep
  })";
  Program spread = edited(program_of(embedding), {SpreadFeatures{"features", {"deep"}, "embeds", "mask", {"more"}}});
  EXPECT_EQ(inputs_of(spread), "x: f32[b, s, 8], m: bool[b, s], features: f32[n, 16]");
  EXPECT_EQ(outputs_of(spread), "embeds[b, s, 16]");

  const char* decoder = R"(  output user "y"
  output user "z"
  output user "w"
  graph (%embeds: f32[b, s, 8], %mask: bool[b, s], %more: f32[n, 8]) {
    %y: f32[b, s, 8] = aten.neg.default(self=%embeds)
    %z: f32[n, 8] = aten.neg.default(self=%more)
    return %y, %z, %mask
  })";
  Program taken = edited(program_of(decoder), {TakeSpreadFeatures{"embeds", "mask", {"more"}}});
  EXPECT_EQ(inputs_of(taken), "embeds: f32[b, s, 16]");
  EXPECT_EQ(outputs_of(taken), "y[b, s, 8], z[b*s, 8], w[b, s]");
  EXPECT_TRUE(is_refused(program_of(decoder), {TakeSpreadFeatures{"embeds", "mask", {"x"}}}));
}

/// Embeddings with features put into them, and then `last`.
std::string putting(std::string_view last) {
  return format(R"(  output user "y"
  graph (%x: f32[b, s, 8], %places: bool[b, s, 8], %features: f32[n, 8], %count: bool[b, s, 8]) {{
    %here: bool[b, s, 8] = aten.where.self(condition=%count, self=%places, other=%places)
    %put: f32[b, s, 8] = aten.masked_scatter.default(self=%x, mask=%places, source=%features)
    %y: f32[b, s, 8] = {}
    return %y
  }})",
                last);
}

TEST(Border, a_text_does_without_features) {
  // Places may depend on the number of features.
  for (const char* last :
       {"aten.neg.default(self=%put)", "aten.where.self(condition=%count, self=%x, other=%features)"}) {
    std::string text = putting(last);
    Program made = edited(program_of(text), {DropFeatures{{"features", "count"}}});
    ASSERT_EQ(made.components.size(), 1u) << last;
    EXPECT_EQ(inputs_of(made), "x: f32[b, s, 8], places: bool[b, s, 8]");
    EXPECT_EQ(ops_of(made), last[5] == 'n' ? "aten.neg.default" : "");
  }
}

TEST(Border, rejects_other_uses_of_features) {
  EXPECT_TRUE(is_refused(program_of(putting("aten.add.Tensor(self=%put, other=%count)")),
                         {DropFeatures{{"features", "count"}}}));
  EXPECT_TRUE(is_refused(program_of(putting("aten.masked_scatter.default(self=%x, mask=%count, source=%x)")),
                         {DropFeatures{{"features", "count"}}}));
}

constexpr const char* kEncoder = R"(  output user "hidden"
  output user "cross.key"
  output user "cross.bad"
  graph (%x: f32[n, m, 8], %other: f32[n, m, 8]) weights (%w = @w) {
    %hidden: f32[n, m, 8] = aten.neg.default(self=%x)
    %key: f32[n, m, 8] = aten.linear.default(input=%hidden, weight=%w)
    %bad: f32[n, m, 8] = aten.add.Tensor(self=%hidden, other=%other)
    return %hidden, %key, %bad
  })";
constexpr const char* kDecoder = R"(  output user "y"
  graph (%states: f32[b, s, 8], %past: f32[b, 5, s]) {
    %y: f32[b, 5, s] = aten.neg.default(self=%past)
    return %y
  })";
constexpr const char* kPlainDecoder = R"(  output user "y"
  graph (%states: f32[b, s, 8], %past: f32[b, s, 8]) {
    %y: f32[b, s, 8] = aten.neg.default(self=%past)
    return %y
  })";

TEST(CrossStates, are_computed_when_empty_ones_are_given) {
  Program made =
      edited(program_of({{"encoder", kEncoder}, {"decoder", kDecoder}}),
             {ComputeCrossStates{"encoder", "hidden", "states", {{"cross.key", "past", "present"}}}}, "decoder");
  EXPECT_EQ(inputs_of(made), "states: f32[b, s, 8], past: f32[b, 5, given_encoder_sequence]");
  EXPECT_EQ(outputs_of(made), "y[b, 5, s], present[b, 5, s]");
  EXPECT_EQ(ops_of(made), "_operator.eq higher_order.cond aten.neg.default");
  EXPECT_EQ(ops_of(made, 1), "aten.linear.default");
  EXPECT_EQ(ops_of(made, 2), "");
}

TEST(CrossStates, are_inputs_no_longer_if_they_are_not_given_back) {
  Program made = edited(program_of({{"encoder", kEncoder}, {"decoder", kPlainDecoder}}),
                        {ComputeCrossStates{"encoder", "hidden", "states", {{"cross.key", "past", ""}}}}, "decoder");
  EXPECT_EQ(inputs_of(made), "states: f32[b, s, 8]");
  EXPECT_EQ(ops_of(made), "aten.linear.default aten.neg.default");
}

TEST(CrossStates, rejects_what_needs_more_than_hidden_states) {
  for (const char* name : {"cross.bad", "no_such_output"}) {
    EXPECT_TRUE(is_refused(program_of({{"encoder", kEncoder}, {"decoder", kDecoder}}),
                           {ComputeCrossStates{"encoder", "hidden", "states", {{name, "past", "present"}}}},
                           "decoder"));
  }
}

}  // namespace
}  // namespace argosy
