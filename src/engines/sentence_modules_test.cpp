#include "engines/sentence_modules.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"

namespace argosy::engines {
namespace {

constexpr const char* kThree = R"([{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
    {"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
    {"idx":2,"name":"2","path":"2_Dense","type":"sentence_transformers.models.Dense"},
    {"idx":3,"name":"3","path":"3_Normalize","type":"sentence_transformers.models.Normalize"}])";

TEST(SentenceModules, say_what_they_do) {
  TestFolder folder;
  folder.write("modules.json", kThree);
  folder.write("1_Pooling/config.json", R"({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true})");
  folder.write("2_Dense/config.json", R"({"in_features": 768, "out_features": 64})");
  EXPECT_EQ(
      left_out_modules(folder.path()),
      "modules.json puts \"Pooling\" (mean), then \"Dense\" (768 to 64 features, \"2_Dense\"), then \"Normalize\" "
      "behind the model; that is not part of the export: apply it to the outputs");
}

TEST(SentenceModules, newer_files_name_the_pooling) {
  TestFolder folder;
  folder.write("modules.json", R"([{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"}])");
  folder.write("1_Pooling/config.json", R"({"pooling_mode": "cls"})");
  EXPECT_NE(left_out_modules(folder.path()).find("\"Pooling\" (\"cls\")"), std::string::npos);
}

TEST(SentenceModules, a_model_alone_has_none) {
  TestFolder folder;
  EXPECT_EQ(left_out_modules(folder.path()), "");
  EXPECT_EQ(left_out_modules({}), "");
  folder.write("modules.json", R"([{"path":"","type":"sentence_transformers.models.Transformer"}])");
  EXPECT_EQ(left_out_modules(folder.path()), "");
}

TEST(SentenceModules, no_file_outside_the_folder_is_opened) {
  TestFolder folder;
  folder.write("modules.json", R"([{"path":"../other","type":"a.Pooling"}])");
  folder.write("model/modules.json", R"([{"path":"../other","type":"a.Pooling"}])");
  folder.write("other/config.json", R"({"pooling_mode": "secret"})");
  EXPECT_EQ(left_out_modules(folder / "model").find("secret"), std::string::npos);
  EXPECT_NE(left_out_modules(folder / "model").find("\"Pooling\" behind"), std::string::npos);
}

TEST(SentenceModules, a_file_that_is_not_read_is_named) {
  TestFolder folder;
  folder.write("modules.json", "[");
  EXPECT_NE(left_out_modules(folder.path()).find("cannot be read"), std::string::npos);
}

}  // namespace
}  // namespace argosy::engines
