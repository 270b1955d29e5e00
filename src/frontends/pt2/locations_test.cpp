#include "frontends/pt2/locations.h"

#include <gtest/gtest.h>

namespace argosy {
namespace {

ModelLocation modules(std::string_view stack) {
  ModelLocation location;
  read_module_stack(stack, location);
  return location;
}

ModelLocation trace(std::string_view text) {
  ModelLocation location;
  read_stack_trace(text, location);
  return location;
}

TEST(Locations, innermost_module_counts) {
  ModelLocation location = modules("L__self__,,pkg.Model;L__self__mlp@2,layers.0.mlp,pkg.sub.Mlp");
  EXPECT_EQ(location.module_path, "layers.0.mlp");
  EXPECT_EQ(location.class_name, "Mlp");
  EXPECT_EQ(location.call_index, 2);
}

TEST(Locations, call_index_in_the_path_is_read_too) {
  ModelLocation location = modules("L__self__mlp,mlp@1,pkg.Mlp");
  EXPECT_EQ(location.module_path, "mlp");
  EXPECT_EQ(location.call_index, 1);
}

TEST(Locations, stacks_that_say_nothing_stay_empty) {
  EXPECT_TRUE(modules("").empty());
  EXPECT_TRUE(modules("a,b").empty());
  EXPECT_TRUE(modules("_empty_nn_module_stack_from_metadata_hook,_empty_nn_module_stack_from_metadata_hook,x").empty());
}

TEST(Locations, last_frame_outside_torch_counts) {
  ModelLocation location = trace(
      "File \"/v/site-packages/transformers/models/llama/modeling_llama.py\", line 456, in forward\n    a\n"
      "  File \"/v/site-packages/transformers/models/llama/modeling_llama.py\", line 65, in forward\n    b\n"
      "  File \"/v/site-packages/torch/nn/functional.py\", line 9, in silu\n    c\n");
  EXPECT_EQ(location.file, "transformers/models/llama/modeling_llama.py");
  EXPECT_EQ(location.line, 65);
}

TEST(Locations, files_outside_packages_lose_their_folder) {
  EXPECT_EQ(trace("File \"/home/somebody/train.py\", line 3, in f\n").file, "train.py");
}

TEST(Locations, broken_traces_are_ignored) {
  EXPECT_TRUE(trace("").empty());
  EXPECT_TRUE(trace("File \"unterminated").file.empty());
  EXPECT_EQ(trace("File \"a.py\", line x").line, 0);
}

}  // namespace
}  // namespace argosy
