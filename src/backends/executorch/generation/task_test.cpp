#include "backends/executorch/generation/task.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/eliminate_dead_code.h"

namespace argosy::executorch {
namespace {

constexpr std::string_view kSchemas = R"(
schema aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
schema aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
schema aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor
schema aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor
schema aten::cat(Tensor[] tensors, int dim=0) -> Tensor
schema aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor
schema aten::eq.Scalar(Tensor self, Scalar other) -> Tensor
schema aten::ge.Tensor(Tensor self, Tensor other) -> Tensor
schema aten::gt.Tensor(Tensor self, Tensor other) -> Tensor
schema aten::le.Tensor(Tensor self, Tensor other) -> Tensor
schema aten::neg(Tensor self) -> Tensor
schema aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
schema aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)
schema aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)
schema aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor
schema aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor
schema aten::sym_size.int(Tensor self, int dim) -> SymInt
schema aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)
weight @embed: f32[10, 8] parameter
weight @head: f32[10, 8] parameter
)";

constexpr std::string_view kCache =
    R"(  attribute capture.cache = "{\"states\":[{\"input\":\"past_key\",\"output\":\"present.key\"},{\"input\":\"past_value\",\"output\":\"present.value\"}]}")";

/// A decoder of one layer with two heads. `mask` computes %mask from %k [1, 1, 1, total] and %q [1, 1, sequence, 1],
/// the positions of keys and of tokens.
std::string decoder(std::string_view mask,
                    std::string_view join = "aten.cat.default(tensors=[%past_key, %heads], dim=2)") {
  return format(R"({}component decode {{
{}
  symbol b positive as "batch"
  symbol s positive as "sequence"
  symbol p nonnegative as "past_sequence"
  output user "logits"
  output user "present.key"
  output user "present.value"
  graph (
      %input_ids: i64[b, s],
      %attention_mask: i64[b, p + s],
      %past_key: f32[b, 2, p, 4],
      %past_value: f32[b, 2, p, 4]) weights (
      %embed = @embed,
      %head = @head) {{
    %batch: int(b) = aten.sym_size.int(self=%input_ids, dim=0)
    %length: int(s) = aten.sym_size.int(self=%input_ids, dim=1)
    %past: int(p) = aten.sym_size.int(self=%past_key, dim=2)
    %total: int(p + s) = aten.sym_size.int(self=%attention_mask, dim=1)
    %range: i64[p + s] = aten.arange.start_step(start=0, end=%total, dtype=dtype:i64)
    %range_1: i64[1, p + s] = aten.unsqueeze.default(self=%range, dim=0)
    %range_2: i64[1, 1, p + s] = aten.unsqueeze.default(self=%range_1, dim=0)
    %k: i64[1, 1, 1, p + s] = aten.unsqueeze.default(self=%range_2, dim=0)
    %tokens: i64[s] = aten.arange.start_step(start=0, end=%length, dtype=dtype:i64)
    %tokens_1: i64[s] = aten.add.Scalar(self=%tokens, other=%past)
    %tokens_2: i64[s, 1] = aten.unsqueeze.default(self=%tokens_1, dim=1)
    %tokens_3: i64[1, s, 1] = aten.unsqueeze.default(self=%tokens_2, dim=0)
    %q: i64[1, 1, s, 1] = aten.unsqueeze.default(self=%tokens_3, dim=0)
{}
    %x: f32[b, s, 8] = aten.embedding.default(weight=%embed, indices=%input_ids)
    %split: f32[b, s, 2, 4] = aten.reshape.default(self=%x, shape=[%batch, %length, 2, 4])
    %heads: f32[b, 2, s, 4] = aten.permute.default(self=%split, dims=[0, 2, 1, 3])
    %keys: f32[b, 2, p + s, 4] = {}
    %values: f32[b, 2, p + s, 4] = aten.cat.default(tensors=[%past_value, %heads], dim=2)
    %seen: f32[b, 2, s, 4] = aten.scaled_dot_product_attention.default(query=%heads, key=%keys, value=%values, attn_mask=%mask, scale=0.5)
    %back: f32[b, s, 2, 4] = aten.permute.default(self=%seen, dims=[0, 2, 1, 3])
    %y: f32[b, s, 8] = aten.reshape.default(self=%back, shape=[%batch, %length, 8])
    %logits: f32[b, s, 10] = aten.linear.default(input=%y, weight=%head)
    return %logits, %keys, %values
  }}
}}
)",
                kSchemas, kCache, mask, join);
}

constexpr std::string_view kCausalMask = "    %mask: bool[1, 1, s, p + s] = aten.le.Tensor(self=%k, other=%q)";
constexpr std::string_view kWindowMask = R"(    %causal: bool[1, 1, s, p + s] = aten.le.Tensor(self=%k, other=%q)
    %first: i64[1, 1, s, 1] = aten.add.Scalar(self=%q, other=-8)
    %window: bool[1, 1, s, p + s] = aten.gt.Tensor(self=%k, other=%first)
    %mask: bool[1, 1, s, p + s] = aten.bitwise_and.Tensor(self=%causal, other=%window))";

/// A model that sees. Its decoder is given types of tokens, and `mask` computes %mask from them too.
std::string seeing_decoder(std::string_view mask) {
  std::string text = decoder(mask);
  auto replace = [&](std::string_view from, std::string_view to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  };
  replace("    %x: f32[b, s, 8] = aten.embedding.default(weight=%embed, indices=%input_ids)\n", "");
  replace("self=%x", "self=%inputs_embeds");
  replace("%input_ids: i64[b, s],", "%inputs_embeds: f32[b, s, 8],\n      %token_type_ids: i64[b, p + s],");
  replace("self=%input_ids", "self=%inputs_embeds");
  replace("      %embed = @embed,\n", "");
  return text + R"(component image_encoder {
  output user "image_features"
  graph (%pixel_values: f32[4, 8]) {
    %features: f32[4, 8] = aten.neg.default(self=%pixel_values)
    return %features
  }
}
component embedding {
  symbol b positive as "batch"
  symbol s positive as "sequence"
  output user "inputs_embeds"
  graph (%input_ids: i64[b, s]) weights (%embed = @embed) {
    %x: f32[b, s, 8] = aten.embedding.default(weight=%embed, indices=%input_ids)
    return %x
  }
}
)";
}

constexpr std::string_view kTypedMask = R"(    %causal: bool[1, 1, s, p + s] = aten.le.Tensor(self=%k, other=%q)
    %seen_by_all: bool[b, p + s] = aten.eq.Scalar(self=%token_type_ids, other=1)
    %seen_1: bool[b, 1, p + s] = aten.unsqueeze.default(self=%seen_by_all, dim=1)
    %seen_2: bool[b, 1, 1, p + s] = aten.unsqueeze.default(self=%seen_1, dim=1)
    %mask: bool[b, 1, s, p + s] = aten.bitwise_or.Tensor(self=%causal, other=%seen_2))";

struct Bound {
  Program program;
  TaskPlan plan;
  std::string text;
  const Component& method() const { return program.components.front(); }
  size_t count(std::string_view op) const {
    size_t found = 0;
    const Graph& graph = method().entry();
    for (NodeId node : graph.nodes()) {
      if (program.schemas[graph[node].op].name == op) ++found;
    }
    return found;
  }
};

Result<Bound> bind_program(const std::string& text, TaskOptions options = {}) {
  ARGOSY_TRY(Program program, parse(text));
  if (options.task.empty()) options.task = "text-generation";
  if (options.max_seq_len == 0) options.max_seq_len = 16;
  ModelFacts facts;
  facts.eos_ids = {2, 3};
  ARGOSY_TRY(TaskPlan plan, plan_task(program, options, facts));
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  ARGOSY_TRY([[maybe_unused]] bool changed, bind_task(plan).run(program, context));
  ARGOSY_TRY(changed, eliminate_dead_code().run(program, context));
  EXPECT_TRUE(verify_first(program));
  std::string printed = print(program);
  return Bound{std::move(program), std::move(plan), std::move(printed)};
}

Bound bound(const std::string& text, TaskOptions options = {}) {
  auto result = bind_program(text, std::move(options));
  if (!result) throw std::runtime_error(to_text(result.error()));
  return *std::move(result);
}

TEST(BindTask, callers_pass_tokens_and_positions_and_get_logits_of_the_last_token) {
  Bound found = bound(decoder(kCausalMask));
  EXPECT_EQ(found.method().name, "forward");
  ASSERT_EQ(found.method().inputs.size(), 2u);
  EXPECT_EQ(found.method().inputs[0].name, "input_ids");
  EXPECT_EQ(found.method().inputs[1].name, "cache_position");
  ASSERT_EQ(found.method().outputs.size(), 1u);
  EXPECT_NE(found.text.find("%logits: f32[1, 1, 10]"), std::string::npos) << found.text;
}

TEST(BindTask, all_logits_are_given_if_asked_for) {
  EXPECT_NE(bound(decoder(kCausalMask), {.all_logits = true}).text.find("%logits: f32[1, s, 10]"), std::string::npos);
}

TEST(BindTask, a_causal_mask_goes) {
  Bound found = bound(decoder(kCausalMask));
  EXPECT_EQ(found.count("llama.update_cache.default"), 2u);
  EXPECT_EQ(found.count("llama.custom_sdpa.default"), 1u);
  EXPECT_EQ(found.count("aten.le.Tensor"), 0u);
  EXPECT_EQ(found.count("aten.permute.default"), 0u);  // heads are where the cache wants them
  EXPECT_NE(found.text.find("is_causal=true"), std::string::npos);
}

TEST(BindTask, a_window_that_all_tokens_fit_in_goes) {
  Bound found = bound(decoder(kWindowMask), {.max_seq_len = 8});
  EXPECT_NE(found.text.find("is_causal=true"), std::string::npos) << found.text;
  EXPECT_EQ(found.count("aten.ge.Tensor"), 0u);
}

TEST(BindTask, a_window_that_they_do_not_fit_in_is_a_mask) {
  Bound found = bound(decoder(kWindowMask), {.max_seq_len = 9});
  EXPECT_EQ(found.count("llama.custom_sdpa.default"), 1u);
  EXPECT_EQ(found.text.find("is_causal=true"), std::string::npos);
  EXPECT_NE(found.text.find("attn_mask=%"), std::string::npos) << found.text;
  EXPECT_EQ(found.count("aten.ge.Tensor"), 1u);
}

TEST(BindTask, kernels_of_executorch_alone_do_without_custom_ops) {
  Bound found = bound(decoder(kCausalMask), {.custom_kv_cache = false, .custom_sdpa = false});
  EXPECT_EQ(found.count("aten.index_put_.default"), 2u);
  EXPECT_EQ(found.count("aten.scaled_dot_product_attention.default"), 1u);
  EXPECT_EQ(found.count("aten.le.Tensor"), 1u);
}

TEST(BindTask, tokens_of_a_call_and_before_it_are_bounded_together) {
  Bound found = bound(decoder(kCausalMask));
  const Component& method = found.method();
  for (const Weight& weight : found.program.weights) {
    if (!weight.name.starts_with("cache.")) continue;
    EXPECT_EQ(weight.shape, (std::vector<int64_t>{1, 16, 2, 4}));
  }
  for (SymExpr symbol : method.symbols->symbols()) {
    if (!method.dim_names.contains(std::string(symbol.symbol_name()))) continue;
    EXPECT_EQ(method.symbols->range(symbol), (SymRange{1, 16}));
  }
}

TEST(BindTask, constants_tell_runners_what_they_ask) {
  Bound found = bound(decoder(kCausalMask));
  std::map<std::string, size_t> values;
  for (const ConstantMethod& constant : found.plan.constants) values[constant.name] = constant.values.size();
  EXPECT_EQ(values["get_eos_ids"], 2u);
  for (const char* name :
       {"get_max_seq_len", "get_max_context_len", "use_kv_cache", "enable_dynamic_shape", "use_sdpa_with_kv_cache"})
    EXPECT_EQ(values[name], 1u) << name;
}

TEST(BindTask, rejects_a_cache_that_does_not_grow_by_the_tokens) {
  std::string rolled = decoder(kCausalMask, "aten.roll.default(self=%past_key, shifts=[1], dims=[2])");
  auto result = bind_program(rolled);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("does not grow"), std::string::npos) << result.error().message;
}

TEST(BindTask, embeddings_say_which_of_them_are_media_where_the_decoder_asks) {
  Bound found = bound(seeing_decoder(kTypedMask), {.task = "multimodal-text-to-text"});
  // One column more, of the type: 1 of pictures, 0 of text.
  EXPECT_NE(found.text.find("f32[1, 4, 9] = aten.constant_pad_nd.default"), std::string::npos) << found.text;
  EXPECT_NE(found.text.find("f32[1, s, 9] = aten.constant_pad_nd.default"), std::string::npos) << found.text;
  EXPECT_NE(found.text.find("%inputs_embeds: f32[1, s, 9]"), std::string::npos) << found.text;
  EXPECT_NE(found.text.find("value=1"), std::string::npos) << found.text;
  const Component* method = found.program.find_component("text_decoder");
  ASSERT_NE(method, nullptr);
  ASSERT_EQ(method->inputs.size(), 2u);
  EXPECT_EQ(method->inputs[0].name, "inputs_embeds");
  EXPECT_EQ(method->inputs[1].name, "cache_position");
  // Types of tokens before the call are kept beside the caches.
  auto is_kept = [](const Weight& weight) { return weight.name == "cache.token_type_ids"; };
  EXPECT_TRUE(std::ranges::any_of(found.program.weights, is_kept));
}

TEST(BindTask, embeddings_stay_as_they_are_where_the_decoder_does_not_ask) {
  Bound found = bound(seeing_decoder(kCausalMask), {.task = "multimodal-text-to-text"});
  EXPECT_EQ(found.text.find("constant_pad_nd"), std::string::npos) << found.text;
  EXPECT_NE(found.text.find("%inputs_embeds: f32[1, s, 8]"), std::string::npos) << found.text;
}

TEST(BindTask, rejects_media_whose_type_is_not_known) {
  // Of text, as far as is known; then two numbers.
  std::string of_text(kTypedMask), of_two(kTypedMask);
  of_text.replace(of_text.find("other=1)"), 8, "other=0)");
  of_two += "\n    %also: bool[b, p + s] = aten.eq.Scalar(self=%token_type_ids, other=2)";
  for (const std::string& mask : {of_text, of_two}) {
    auto result = bind_program(seeing_decoder(mask), {.task = "multimodal-text-to-text"});
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("token_type_ids"), std::string::npos) << result.error().message;
  }
}

TEST(BindTask, types_are_zero_in_a_text_without_media) {
  EXPECT_EQ(bound(seeing_decoder(kTypedMask)).text.find("constant_pad_nd"), std::string::npos);
}

TEST(BindTask, rejects_tasks_that_the_model_is_not_for) {
  for (std::string task : {"fill-mask", "text2text-generation", "multimodal-text-to-text"}) {
    auto result = bind_program(decoder(kCausalMask), {.task = task});
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find(task), std::string::npos) << result.error().message;
  }
  EXPECT_FALSE(bind_program(decoder(kCausalMask), {.task = "poetry"}));
}

}  // namespace
}  // namespace argosy::executorch
