#include "backends/executorch/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace argosy::executorch {
namespace {

TEST(Kernels, every_irregular_name_is_of_a_kernel_that_exists) {
  for (const IrregularKernel& row : irregular_kernels()) {
    EXPECT_TRUE(row.kernel.empty() || has_kernel(row.kernel)) << row.op << " -> " << row.kernel;
  }
}

TEST(Kernels, irregular_names_are_sorted_and_unique) {
  auto rows = irregular_kernels();
  for (size_t i = 1; i < rows.size(); ++i) EXPECT_LT(rows[i - 1].op, rows[i].op);
}

TEST(Kernels, the_lists_hold_what_the_libraries_register) {
  EXPECT_TRUE(has_kernel("aten::add.out"));
  EXPECT_TRUE(has_kernel("aten::index_put_"));
  EXPECT_TRUE(has_kernel("executorch_prim::floordiv.Scalar"));
  EXPECT_TRUE(has_kernel("quantized_decomposed::embedding_4bit.dtype_out"));
  EXPECT_TRUE(has_kernel("dim_order_ops::_to_dim_order_copy.out"));
  EXPECT_TRUE(has_kernel("llama::custom_sdpa.out"));
  EXPECT_FALSE(has_kernel("aten::sort.out"));
  EXPECT_FALSE(has_kernel("aten::add"));
  EXPECT_FALSE(has_kernel(""));
}

TEST(Kernels, names_of_kernels_follow_from_those_of_ops) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"aten.add.Tensor", "aten::add.out"},
      {"aten.add.Scalar", "aten::add.Scalar_out"},
      {"aten.le.Tensor", "aten::le.Tensor_out"},
      {"aten.relu.default", "aten::relu.out"},
      {"aten.convolution.default", "aten::convolution.out"},
      {"aten.where.self", "aten::where.self_out"},
      {"aten.permute.default", "aten::permute_copy.out"},
      {"aten.expand.default", "aten::expand_copy.out"},
      {"aten.select.int", "aten::select_copy.int_out"},
      {"aten.slice.Tensor", "aten::slice_copy.Tensor_out"},
      {"aten.unsqueeze.default", "aten::unsqueeze_copy.out"},
      {"aten.squeeze.dims", "aten::squeeze_copy.dims_out"},
      {"aten.split_with_sizes.default", "aten::split_with_sizes_copy.out"},
      {"aten.unbind.int", "aten::unbind_copy.int_out"},
      {"aten.upsample_nearest2d.vec", "aten::upsample_nearest2d.vec_out"},
      {"quantized_decomposed.embedding_byte.default", "quantized_decomposed::embedding_byte.out"},
      {"quantized_decomposed.embedding_byte.dtype", "quantized_decomposed::embedding_byte.dtype_out"},
      {"llama.update_cache.default", "llama::update_cache.out"},
      {"aten.reshape.default", "aten::view_copy.out"},
      {"aten.max.dim", "aten::max.dim_max"},
      {"aten.mean.dim", "aten::mean.out"},
      {"aten.mean.default", "aten::mean.dtype_out"},
      {"_operator.floordiv", "executorch_prim::floordiv.Scalar"},
  };
  for (auto [op, kernel] : rows) EXPECT_EQ(kernel_for(op), kernel) << op;
}

TEST(Kernels, other_overloads_are_not_taken_for_the_plain_one) {
  for (std::string_view op :
       {"aten.sort.default", "aten.round.decimals", "aten.var.default", "aten.sum.default", "aten.arange.start",
        "aten.squeeze.default", "aten.view.dtype", "aten.floor_divide.Scalar", "higher_order.cond", "add", ""}) {
    EXPECT_EQ(kernel_for(op), std::nullopt) << op;
  }
}

}  // namespace
}  // namespace argosy::executorch
