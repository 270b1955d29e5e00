#include "driver/bundle_companions.h"

#include <gtest/gtest.h>

#include "engines/companions.h"
#include "io/test_folder.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

JsonDocument no_components() { return *JsonDocument::parse_owned(R"({"components": []})", "capture.json"); }

engines::BundlePlan copies(const engines::SourceModel& model) {
  engines::BundlePlan plan;
  plan.copied = engines::companion_files(model);
  return plan;
}

TEST(BundleCompanions, leaves_out_links_that_lead_out_of_the_model_s_folder) {
  TestFolder folder;
  folder.write("secret", "of this machine");
  folder.write("m/config.json", "{}");
  folder.write("m/LICENSE", "free");
  folder.write("m/texts/notice", "ours");
  fs::create_symlink("../secret", folder / "m/NOTICE");
  fs::create_symlink("texts/notice", folder / "m/COPYING");  // a link that stays inside
  fs::create_symlink("../secret", folder / "m/notes.txt");   // no companion
  JsonDocument manifest = no_components();
  auto model = engines::read_source_model(folder / "m", manifest.root());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_FALSE(model->has_file("NOTICE"));
  engines::BundlePlan plan = copies(*model);
  auto companions = list_companions(*model, plan);
  ASSERT_TRUE(companions) << companions.error().message;
  EXPECT_EQ(companions->copied, (std::vector<std::string>{"COPYING", "LICENSE", "config.json"}));
  ASSERT_EQ(companions->notes.size(), 1u);
  EXPECT_NE(companions->notes[0].find("NOTICE is left out"), std::string::npos) << companions->notes[0];
}

TEST(BundleCompanions, takes_files_of_the_hub_s_cache) {
  TestFolder folder;
  folder.write("models--o--n/blobs/abc", "{}");
  folder.write("models--o--other/blobs/def", "{}");
  fs::path snapshot = folder / "models--o--n/snapshots/one";
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/abc", snapshot / "config.json");
  fs::create_symlink("../../../models--o--other/blobs/def", snapshot / "tokenizer.json");
  JsonDocument manifest = no_components();
  auto model = engines::read_source_model(snapshot, manifest.root());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->files, std::vector<std::string>{"config.json"});
  EXPECT_EQ(model->left_out, std::vector<std::string>{"tokenizer.json"});
}

TEST(BundleCompanions, rejects_configurations_that_are_links_out_of_the_folder) {
  TestFolder folder;
  folder.write("secret.json", "{}");
  folder.write("m/config.json", "{}");
  fs::create_symlink("../secret.json", folder / "m/generation_config.json");
  JsonDocument manifest = no_components();
  expect_error(engines::read_source_model(folder / "m", manifest.root()), ErrorCode::kInvalidInput,
               "generation_config.json\" is a link that leads out");
}

TEST(BundleCompanions, says_nothing_of_how_the_checkpoint_is_quantised) {
  TestFolder folder;
  folder.write("m/config.json", R"({"quantization_config": {"quant_method": "fp8"}, "vocab_size": 9})");
  JsonDocument manifest = no_components();
  auto model = engines::read_source_model(folder / "m", manifest.root());
  ASSERT_TRUE(model) << model.error().message;
  engines::BundlePlan plan = copies(*model);
  auto companions = list_companions(*model, plan);
  ASSERT_TRUE(companions) << companions.error().message;
  EXPECT_TRUE(companions->copied.empty());
  ASSERT_EQ(plan.files.size(), 1u);
  EXPECT_EQ(plan.files[0].text.find("quantization_config"), std::string::npos);
  EXPECT_NE(plan.files[0].text.find("vocab_size"), std::string::npos);
}

}  // namespace
}  // namespace argosy
