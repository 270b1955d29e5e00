#include "backends/onnx/mixed_half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "backends/onnx/builder.h"
#include "backends/onnx/half_fit.h"
#include "backends/onnx/names.h"

namespace argosy::onnx {
namespace {

/// A weight, not a constant of the translation.
TensorSourcePtr weight_of(const std::vector<float>& values, std::vector<int64_t> shape) {
  auto owner = std::make_shared<std::vector<float>>(values);
  auto made =
      borrowed(std::as_bytes(std::span(*owner)), DType::kF32, std::move(shape), "w" + std::to_string(values[0]), owner);
  return *made;
}

class MixedHalfTest : public testing::Test {
 protected:
  Ref input(const std::string& name, DType dtype = DType::kF32) {
    Ref ref = f.add_value({name, dtype, std::vector<Dim>{2, 2}});
    f.root().inputs.push_back(ref);
    return ref;
  }

  Ref weight(float value, const std::string& name = "w") {
    return f.weight(weight_of({value, 0.5F, -0.5F, 1}, {2, 2}), name);
  }

  Ref named(Ref ref, const std::string& name) {
    f[ref].name = name;
    return ref;
  }

  Ref norm(Ref ref) { return f.node("Softmax", {ref}, {{"axis", int64_t{-1}}}); }

  Model finished(Ref output) {
    f[output].name = "y";
    f[output].shape = std::vector<Dim>{2, 2};
    f.root().outputs.push_back(output);
    return f.take();
  }

  static size_t count(const Model& model, std::string_view op) {
    return static_cast<size_t>(std::ranges::count(model.graphs[0].nodes, op, &Node::op));
  }

  static DType type_of(const Model& model, std::string_view op, size_t which = 0) {
    for (const Node& node : model.graphs[0].nodes) {
      if (node.op == op && which-- == 0) return *model[node.outputs[0]].dtype;
    }
    ADD_FAILURE() << "no " << op;
    return DType::kBool;
  }

  static size_t weights_of(const Model& model, DType dtype) {
    return static_cast<size_t>(std::ranges::count_if(
        model.initializers, [&](const Initializer& each) { return each.tensor->dtype() == dtype; }));
  }

  /// x + relu(x @ a) @ b, then a norm.
  Model layer(float first = 2) {
    Ref x = input("x");
    Ref inner = named(f.node("MatMul", {x, weight(first, "a")}), "inner");
    Ref large = named(f.node("Relu", {inner}), "large");
    Ref outer = named(f.node("MatMul", {large, weight(3, "b")}), "outer");
    return finished(norm(f.node("Add", {x, outer})));
  }

  Builder f{22};
};

TEST_F(MixedHalfTest, products_and_what_is_between_them_are_half_and_sums_before_norms_are_not) {
  Model model = layer();
  ASSERT_TRUE(narrow_to_half(model, nullptr));
  EXPECT_EQ(type_of(model, "MatMul", 0), DType::kF16);
  EXPECT_EQ(type_of(model, "Relu"), DType::kF16);
  EXPECT_EQ(type_of(model, "MatMul", 1), DType::kF16);
  EXPECT_EQ(type_of(model, "Add"), DType::kF32);
  EXPECT_EQ(type_of(model, "Softmax"), DType::kF32);
  EXPECT_EQ(count(model, "Cast"), 2U);  // of the input, and of the second product
  EXPECT_EQ(weights_of(model, DType::kF16), 2U);
  EXPECT_EQ(weights_of(model, DType::kF32), 0U);
  EXPECT_EQ(model[model.graphs[0].inputs[0]].dtype, DType::kF32);
  EXPECT_EQ(model[model.graphs[0].outputs[0]].dtype, DType::kF32);
  EXPECT_EQ(model.metadata.at(std::string(kMixedHalfKey)),
            "2 of 2 products compute in float16; no values were seen, so structure alone decided");
}

TEST_F(MixedHalfTest, what_was_seen_to_be_large_stays_single_with_its_weights_in_half) {
  Model model = layer();
  std::map<std::string, double> seen = {{"x", 1}, {"inner", 9000}, {"large", 9000}, {"outer", 2}};
  ASSERT_TRUE(narrow_to_half(model, &seen));
  for (size_t product : {0U, 1U}) EXPECT_EQ(type_of(model, "MatMul", product), DType::kF32);
  EXPECT_EQ(type_of(model, "Relu"), DType::kF32);
  EXPECT_EQ(count(model, "Cast"), 2U);  // of both weights
  EXPECT_EQ(weights_of(model, DType::kF16), 2U);
  EXPECT_EQ(model.metadata.at(std::string(kMixedHalfKey)),
            "0 of 2 products compute in float16; 3 nodes stay float32 as values up to 9e+03 were seen, the largest at "
            "no module");
}

TEST_F(MixedHalfTest, what_was_seen_to_be_small_is_half) {
  Model model = layer();
  std::map<std::string, double> seen = {{"x", 1}, {"inner", 8000}, {"large", 8000}, {"outer", 2}};
  ASSERT_TRUE(narrow_to_half(model, &seen));
  EXPECT_EQ(type_of(model, "Relu"), DType::kF16);
}

TEST_F(MixedHalfTest, rejects_values_of_another_graph) {
  Model model = layer();
  std::map<std::string, double> seen = {{"x", 1}};
  Status status = narrow_to_half(model, &seen);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("\"inner\""), std::string::npos) << status.error().message;
}

TEST_F(MixedHalfTest, a_weight_that_does_not_fit_stays_as_it_is) {
  Model model = layer(70000);
  ASSERT_TRUE(narrow_to_half(model, nullptr));
  EXPECT_EQ(type_of(model, "MatMul", 0), DType::kF32);
  EXPECT_EQ(type_of(model, "Relu"), DType::kF32);  // as what it reads
  EXPECT_EQ(type_of(model, "MatMul", 1), DType::kF16);
  EXPECT_EQ(weights_of(model, DType::kF32), 1U);
}

TEST_F(MixedHalfTest, numbers_of_integers_and_angles_stay_single) {
  Ref positions = f.cast(input("position_ids", DType::kI64), DType::kF32);
  Ref angles = f.node("MatMul", {positions, weight(2)});
  Model model = finished(f.node("Cos", {angles}));
  ASSERT_TRUE(narrow_to_half(model, nullptr));
  EXPECT_EQ(type_of(model, "MatMul"), DType::kF32);
  EXPECT_EQ(weights_of(model, DType::kF32), 1U);
}

TEST_F(MixedHalfTest, products_with_what_callers_keep_stay_single) {
  Ref query = f.node("MatMul", {input("x"), weight(2)});
  Ref keys = f.node("Transpose", {input("past")}, {{"perm", Ints{1, 0}}});
  Model model = finished(norm(f.node("MatMul", {query, keys})));
  ASSERT_TRUE(narrow_to_half(model, nullptr));
  EXPECT_EQ(type_of(model, "MatMul", 0), DType::kF16);
  EXPECT_EQ(type_of(model, "MatMul", 1), DType::kF32);
}

TEST_F(MixedHalfTest, moves_are_as_what_they_move_and_values_are_cast_once) {
  Ref x = input("x");
  Ref product = f.node("Transpose", {f.node("MatMul", {x, weight(2)})}, {{"perm", Ints{1, 0}}});
  Ref more = f.node("MatMul", {product, weight(3, "v")});
  Ref third = f.node("MatMul", {x, weight(4, "u")});
  Model model = finished(norm(f.node("Add", {f.node("Add", {more, product}), third})));
  ASSERT_TRUE(narrow_to_half(model, nullptr));
  EXPECT_EQ(type_of(model, "Transpose"), DType::kF16);
  EXPECT_EQ(count(model, "Cast"), 4U);  // x once, and the three that the sums read
}

TEST_F(MixedHalfTest, observed_values_are_outputs) {
  Model model = layer();
  ASSERT_TRUE(observe_values(model));
  std::vector<std::string> names;
  for (Ref ref : model.graphs[0].outputs) names.push_back(model[ref].name);
  EXPECT_EQ(names, (std::vector<std::string>{"y", "argosy.seen.x", "argosy.seen.inner", "argosy.seen.large",
                                             "argosy.seen.outer"}));
  EXPECT_EQ(type_of(model, "MatMul"), DType::kF32);
}

TEST(HalfFitTest, weights_fit_that_are_neither_too_large_nor_all_too_small) {
  auto fits = [](const std::vector<float>& values) {
    return *fits_half(weight_of(values, {static_cast<int64_t>(values.size())}));
  };
  EXPECT_TRUE(fits({1, -65504}));
  EXPECT_FALSE(fits({1, -70000}));
  EXPECT_TRUE(fits({1e-9F, 1}));
  EXPECT_FALSE(fits({1e-6F, -2e-6F}));
  EXPECT_FALSE(fits({1e-12F, 0}));
  EXPECT_TRUE(fits({0, 0}));
}

}  // namespace
}  // namespace argosy::onnx
