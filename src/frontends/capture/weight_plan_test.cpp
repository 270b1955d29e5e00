#include "frontends/capture/weight_plan.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/text.h"
#include "frontends/capture/unused_tensors.h"
#include "io/safetensors_writer.h"
#include "io/test_folder.h"
#include "ir/text.h"

namespace argosy {
namespace {

std::vector<std::byte> bytes_of_floats(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// a and b are f32[2, 2]: 0 1 2 3, and 10 11 12 13.
Checkpoint two_tensors(const TestFolder& folder) {
  std::vector<NamedSource> tensors;
  tensors.push_back({"a", literal(bytes_of_floats({0, 1, 2, 3}), DType::kF32, {2, 2}).value()});
  tensors.push_back({"b", literal(bytes_of_floats({10, 11, 12, 13}), DType::kF32, {2, 2}).value()});
  SafetensorsLayout layout = lay_out_safetensors(std::move(tensors)).value();
  OutputFile file = OutputFile::create(folder / "model.safetensors", Overwrite::kReplace).value();
  EXPECT_TRUE(write_safetensors(layout, file, 1 << 20).has_value());
  EXPECT_TRUE(file.commit().has_value());
  return Checkpoint::open(folder.path()).value();
}

std::string plan_of(const Checkpoint& checkpoint, std::string_view weights) {
  return format(
      R"({{"format":"argosy-weight-plan","version":1,"model_class":"M","checkpoint_hash":"{}","weights":[{}],)"
      R"("missing":[],"unexpected":[]}})",
      headers_hash(checkpoint), weights);
}

std::vector<float> floats_of(const TensorSource& source) {
  std::vector<std::byte> bytes;
  ByteSink sink = [&](std::span<const std::byte> part) -> Status {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  };
  EXPECT_TRUE(source.stream_to(sink, 1 << 16).has_value());
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// What the plan's only weight is made of, or its error.
Result<std::vector<float>> replay(std::string_view weight) {
  TestFolder folder;
  Checkpoint checkpoint = two_tensors(folder);
  ARGOSY_TRY(WeightPlan plan, WeightPlan::parse(plan_of(checkpoint, weight), "test"));
  ARGOSY_TRY(std::vector<TensorSourcePtr> sources, plan.sources(checkpoint));
  return floats_of(*sources.at(0));
}

TEST(WeightPlan, replays_each_step) {
  auto made = [](std::string_view shape, std::string_view steps) {
    auto values =
        replay(format(R"({{"name":"w","dtype":"f32","shape":{},"sources":["a","b"],"steps":[{}]}})", shape, steps));
    EXPECT_TRUE(values.has_value()) << (values ? "" : to_text(values.error()));
    return values.value_or(std::vector<float>());
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(made("[2,2,2]", R"({"op":"stack","inputs":[0,1],"dim":1})"), (Floats{0, 1, 10, 11, 2, 3, 12, 13}));
  EXPECT_EQ(made("[2,4]", R"({"op":"concat","inputs":[1,0],"dim":1})"), (Floats{10, 11, 0, 1, 12, 13, 2, 3}));
  EXPECT_EQ(made("[2,1]", R"({"op":"slice","inputs":[1],"dim":1,"start":1,"length":1})"), (Floats{11, 13}));
  EXPECT_EQ(made("[2,2]", R"({"op":"transpose","inputs":[0],"order":[1,0]})"), (Floats{0, 2, 1, 3}));
  EXPECT_EQ(made("[4]", R"({"op":"reshape","inputs":[0],"shape":[4]})"), (Floats{0, 1, 2, 3}));
  EXPECT_EQ(made("[4]", R"({"op":"cast","inputs":[1],"dtype":"bf16"},{"op":"cast","inputs":[2],"dtype":"f32"},)"
                        R"({"op":"reshape","inputs":[3],"shape":[4]})"),
            (Floats{10, 11, 12, 13}));
  EXPECT_EQ(made("[2,2]", R"({"op":"affine","inputs":[1],"scale":0.5,"offset":-1,"dtype":"f32"})"),
            (Floats{4, 4.5, 5, 5.5}));
  // The first bytes of a and b, which are 0, by a table of two.
  EXPECT_EQ(
      made("[2]",
           R"({"op":"bitcast","inputs":[0],"dtype":"u8"},{"op":"reshape","inputs":[2],"shape":[16]},)"
           R"({"op":"slice","inputs":[3],"dim":0,"start":0,"length":2},{"op":"reshape","inputs":[1],"shape":[4]},)"
           R"({"op":"gather","inputs":[5,4]})"),
      (Floats{10, 10}));
  EXPECT_EQ(made("[2,2]", R"({"op":"dequantize","inputs":[1,0],"block":[1,1],"dtype":"f32"})"),
            (Floats{0, 11, 24, 39}));
  EXPECT_EQ(made("[2,2]", R"({"op":"slice","inputs":[0],"dim":0,"start":1,"length":1},)"
                          R"({"op":"dequantize","inputs":[1,2,2],"block":[2,1],"zero":7,"modulus":9,"dtype":"f32"})"),
            (Floats{20, 30, 24, 36}));  // scales 2 3; zero points 2 + 7 and 3 + 7 modulo 9: 0 and 1
  EXPECT_EQ(made("[2,2]", R"({"op":"bitcast","inputs":[0],"dtype":"u16"},{"op":"slice","inputs":[2],"dim":2,"start":1,)"
                          R"("length":1},{"op":"reshape","inputs":[3],"shape":[2,2]},)"
                          R"({"op":"bitcast","inputs":[4],"dtype":"bf16"},{"op":"cast","inputs":[5],"dtype":"f32"})"),
            (Floats{0, 1, 2, 3}));
  EXPECT_EQ(made("[2,4]", R"({"op":"slice","inputs":[0],"dim":0,"start":0,"length":1},)"
                          R"({"op":"bitcast","inputs":[2],"dtype":"u8"},{"op":"slice","inputs":[3],"dim":2,"start":0,)"
                          R"("length":2},{"op":"reshape","inputs":[4],"shape":[4]},)"
                          R"({"op":"cast","inputs":[5],"dtype":"i32"},{"op":"gather","inputs":[1,6]})"),
            (Floats{10, 10, 10, 10, 12, 12, 12, 12}));
  EXPECT_EQ(made("[2,2]", R"({"op":"add_product","inputs":[1,0,0],"scale":0.5})"), (Floats{11, 12.5, 15, 18.5}));
}

TEST(WeightPlan, has_notes) {
  TestFolder folder;
  std::string text = plan_of(two_tensors(folder), "");
  EXPECT_TRUE(WeightPlan::parse(text, "x")->notes().empty());
  text.insert(1, R"("notes":["one","two"],)");
  EXPECT_EQ(WeightPlan::parse(text, "x")->notes(), (std::vector<std::string>{"one", "two"}));
}

TEST(WeightPlan, weights_may_be_tied_or_come_with_the_plan) {
  TestFolder folder;
  Checkpoint checkpoint = two_tensors(folder);
  auto plan =
      WeightPlan::parse(plan_of(checkpoint, R"({"name":"y","dtype":"f32","shape":[2,2],"sources":["a"]},)"
                                            R"({"name":"x","dtype":"f32","shape":[2,2],"tied_to":"y"},)"
                                            R"({"name":"f","dtype":"f32","shape":[3],"fill":"0000803f"},)"
                                            R"({"name":"g","dtype":"f32","shape":[2],"bytes":"0000803f00000040"})"),
                        "test");
  ASSERT_TRUE(plan.has_value()) << to_text(plan.error());
  auto sources = plan->sources(checkpoint);
  ASSERT_TRUE(sources.has_value()) << to_text(sources.error());
  EXPECT_EQ(floats_of(*sources->at(0)), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(floats_of(*sources->at(1)), (std::vector<float>{1, 2}));
  EXPECT_EQ(plan->weights()[2].name, "x");
  EXPECT_EQ(sources->at(2), sources->at(3));
}

std::string refusal(std::string_view weight) {
  auto values = replay(weight);
  EXPECT_FALSE(values.has_value()) << weight;
  return values ? std::string() : values.error().message;
}

std::string step_refusal(std::string_view step) {
  return refusal(format(R"({{"name":"w","dtype":"f32","shape":[2,2],"sources":["a","b"],"steps":[{}]}})", step));
}

TEST(WeightPlan, rejects_other_formats_and_versions) {
  TestFolder folder;
  std::string text = plan_of(two_tensors(folder), "");
  std::string other = text, newer = text;
  other.replace(other.find("argosy-weight-plan"), 6, "hidden");
  newer.replace(newer.find("\"version\":1"), 11, "\"version\":4");
  expect_error(WeightPlan::parse(other, "x"), ErrorCode::kCorruptFile, "expected \"argosy-weight-plan\"");
  expect_error(WeightPlan::parse(newer, "x"), ErrorCode::kUnsupportedVersion, "format 4 is not read, only 1 to 3");
  expect_error(WeightPlan::parse("[]", "x"), ErrorCode::kCorruptFile, "");
}

TEST(WeightPlan, rejects_weights_without_one_origin) {
  EXPECT_NE(refusal(R"({"name":"w","dtype":"f32","shape":[2]})").find("none of sources"), std::string::npos);
  EXPECT_NE(
      refusal(R"({"name":"w","dtype":"f32","shape":[1],"sources":["a"],"fill":"00000000"})").find("more than one"),
      std::string::npos);
  EXPECT_NE(refusal(R"({"name":"w","dtype":"f32","shape":[1],"sources":[]})").find("sources are empty"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"name":"w","dtype":"f32","shape":[1],"sources":["a","b"]})").find("2 sources and no step"),
            std::string::npos);
}

TEST(WeightPlan, rejects_unknown_steps_and_values) {
  EXPECT_NE(step_refusal(R"({"op":"sort","inputs":[0]})").find("\"sort\" is no step"), std::string::npos);
  EXPECT_NE(step_refusal(R"({"op":"reshape","inputs":[2],"shape":[2,2]})").find("2 is out of range"),
            std::string::npos);
  EXPECT_NE(step_refusal(R"({"op":"reshape","inputs":[-1],"shape":[2,2]})").find("-1 is out of range"),
            std::string::npos);
  EXPECT_NE(step_refusal(R"({"op":"reshape","inputs":[0,1],"shape":[2,2]})").find("2 inputs for reshape"),
            std::string::npos);
  EXPECT_NE(step_refusal(R"({"op":"stack","inputs":[],"dim":0})").find("0 inputs for stack"), std::string::npos);
  EXPECT_NE(step_refusal(R"({"op":"cast","inputs":[0],"dtype":"float"})").find("\"float\" is no dtype"),
            std::string::npos);
}

TEST(WeightPlan, rejects_steps_that_do_not_fit_the_checkpoint) {
  for (std::string_view step :
       {R"({"op":"slice","inputs":[0],"dim":0,"start":1,"length":2})",
        R"({"op":"slice","inputs":[0],"dim":5,"start":0,"length":1})",
        R"({"op":"slice","inputs":[0],"dim":0,"start":-1,"length":1})",
        R"({"op":"transpose","inputs":[0],"order":[0,0]})", R"({"op":"transpose","inputs":[0],"order":[1]})",
        R"({"op":"reshape","inputs":[0],"shape":[3,3]})",
        R"({"op":"reshape","inputs":[0],"shape":[4611686018427387904,4]})", R"({"op":"concat","inputs":[0,1],"dim":2})",
        R"({"op":"stack","inputs":[0,1],"dim":3})", R"({"op":"cast","inputs":[0],"dtype":"i32"})"}) {
    EXPECT_FALSE(step_refusal(step).empty()) << step;
  }
  EXPECT_NE(step_refusal(R"({"op":"reshape","inputs":[0],"shape":[4]})").find("the plan promises f32[2, 2]"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"name":"w","dtype":"f32","shape":[2,2],"sources":["c"]})").find("\"c\""), std::string::npos);
}

TEST(WeightPlan, rejects_ties_to_nothing) {
  EXPECT_NE(refusal(R"({"name":"w","dtype":"f32","shape":[2],"tied_to":"v"})").find("which the plan does not make"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"name":"w","dtype":"f32","shape":[2],"tied_to":"w"})").find("which the plan does not make"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"name":"v","dtype":"f32","shape":[2,2],"sources":["a"]},)"
                    R"({"name":"w","dtype":"f32","shape":[2],"tied_to":"v"})")
                .find("another dtype or shape"),
            std::string::npos);
}

TEST(WeightPlan, rejects_names_that_occur_twice) {
  EXPECT_NE(refusal(R"({"name":"v","dtype":"f32","shape":[2,2],"sources":["a"]},)"
                    R"({"name":"v","dtype":"f32","shape":[2,2],"sources":["b"]})")
                .find("\"v\" occurs twice"),
            std::string::npos);
}

TEST(WeightPlan, rejects_values_of_another_size) {
  std::string half = R"("dtype":"u8","shape":[200000000],"fill":"00"})";
  EXPECT_NE(refusal(R"({"name":"a",)" + half + R"(,{"name":"b",)" + half).find("more to fill"), std::string::npos);
  for (std::string_view weight :
       {R"({"name":"w","dtype":"f32","shape":[2],"fill":"00"})", R"({"name":"w","dtype":"f32","shape":[2],"fill":""})",
        R"({"name":"w","dtype":"f32","shape":[4611686018427387904,16],"fill":"00000000"})",
        R"({"name":"w","dtype":"u8","shape":[1099511627776],"fill":"00"})",
        R"({"name":"w","dtype":"u8","shape":[2],"bytes":"00"})", R"({"name":"w","dtype":"u8","shape":[1],"bytes":"0"})",
        R"({"name":"w","dtype":"u8","shape":[1],"bytes":"0x"})",
        R"({"name":"w","dtype":"u8","shape":[-1],"fill":"00"})"}) {
    EXPECT_FALSE(refusal(weight).empty()) << weight;
  }
}

TEST(WeightPlan, rejects_other_checkpoints) {
  TestFolder folder;
  Checkpoint checkpoint = two_tensors(folder);
  std::string text = plan_of(checkpoint, "");
  text.replace(text.find(headers_hash(checkpoint)), 4, "beef");
  auto plan = WeightPlan::parse(text, "x");
  ASSERT_TRUE(plan.has_value());
  expect_error(plan->sources(checkpoint), ErrorCode::kInvalidInput, "made for a checkpoint of other names");
}

TEST(UnusedTensors, are_those_that_no_weight_of_the_program_is_made_of) {
  TestFolder folder;
  Checkpoint checkpoint = two_tensors(folder);
  std::string text = plan_of(checkpoint, R"({"name":"w","dtype":"f32","shape":[2,2],"sources":["a"]},)"
                                         R"({"name":"x","dtype":"f32","shape":[2,2],"tied_to":"w"})");
  WeightPlan plan = WeightPlan::parse(text, "test").value();
  auto unused = [&](std::string_view weight, const WeightPlan* by) {
    return unused_tensors(parse(format("weight @{}: f32[2, 2] parameter graph () {{ return }}", weight)).value(), by,
                          checkpoint);
  };
  // The plan does not name b: transformers passes over it without a word.
  EXPECT_EQ(unused("x", &plan), std::vector<std::string>());
  EXPECT_EQ(unused("other", &plan), std::vector<std::string>{"a"});
  EXPECT_EQ(unused("a", nullptr), std::vector<std::string>{"b"});
  text.replace(text.find(R"("unexpected":[])"), 15, R"("unexpected":["b"])");
  plan = WeightPlan::parse(text, "test").value();
  EXPECT_EQ(unused("w", &plan), std::vector<std::string>{"b"});
}

}  // namespace
}  // namespace argosy
