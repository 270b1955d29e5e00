#include "cache/capture_key.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"

namespace argosy {
namespace {

std::string canonical(std::string_view text) {
  auto result = canonical_configuration(text, "config.json");
  EXPECT_TRUE(result.has_value()) << (result ? "" : to_text(result.error()));
  return result.value_or("");
}

std::string key_of(std::string_view configuration, const CaptureRequest& options = {}) {
  TestFolder folder;
  folder.write("config.json", configuration);
  CaptureRequest request = options;
  request.model = folder.path();
  auto key = capture_key(request);
  EXPECT_TRUE(key.has_value()) << (key ? "" : to_text(key.error()));
  return key.value_or("");
}

TEST(CaptureKey, one_configuration_has_one_form) {
  EXPECT_EQ(canonical(R"({"b": 1, "a": {"d": [1.50, 1e-05], "c": null}})"),
            R"({"a":{"c":null,"d":[1.5,1e-05]},"b":1})");
  EXPECT_EQ(canonical(R"({"a": 1, "a": 2})"), R"({"a":2})");
  EXPECT_EQ(key_of(R"({"eps": 1e-5, "n": 2})"), key_of("{\"n\":2,\n \"eps\":0.00001}"));
}

TEST(CaptureKey, ignored_fields_are_left_out_at_any_depth) {
  std::string plain = key_of(R"({"n":2,"text_config":{"m":3}})");
  for (std::string_view field : ignored_configuration_fields()) {
    std::string name(field);
    EXPECT_EQ(key_of("{\"" + name + "\":\"x\",\"n\":2,\"text_config\":{\"m\":3}}"), plain) << name;
    EXPECT_EQ(key_of("{\"n\":2,\"text_config\":{\"m\":3,\"" + name + "\":\"x\"}}"), plain) << name;
  }
}

TEST(CaptureKey, plans_depend_on_how_weights_are_stored_and_on_the_adapter) {
  TestFolder folder;
  folder.write("model.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  Checkpoint checkpoint = Checkpoint::open(folder.path()).value();
  CaptureRequest request;
  request.model = folder.path();
  auto key = [&](std::string_view configuration) {
    folder.write("config.json", configuration);
    return weight_plan_key(request, checkpoint).value();
  };
  std::string plain = key(R"({"n":2})"), quantized = key(R"({"n":2,"quantization_config":{"quant_method":"fp8"}})");
  EXPECT_EQ(key(R"({"n":2,"_name_or_path":"x"})"), plain);
  EXPECT_NE(quantized, plain);
  EXPECT_NE(key(R"({"n":2,"quantization_config":{"quant_method":"gptq"}})"), quantized);
  folder.write("adapter_config.json", R"({"lora_alpha":1})");
  request.adapter = folder.path();
  std::string adapted = key(R"({"n":2})");
  EXPECT_NE(adapted, plain);
  folder.write("adapter_config.json", R"({"lora_alpha":2})");
  EXPECT_NE(key(R"({"n":2})"), adapted);
}

TEST(CaptureKey, every_other_field_and_option_counts) {
  std::string plain = key_of(R"({"n":2})");
  EXPECT_EQ(plain.size(), 64u);
  EXPECT_NE(key_of(R"({"n":3})"), plain);
  EXPECT_NE(key_of(R"({"n":2.0})"), plain);
  EXPECT_NE(key_of(R"({"n":2,"m":null})"), plain);
  CaptureRequest task, shape, variant, prefill, extended;
  task.task = "a";
  shape.shape = "a";
  variant.variant = "a";
  prefill.prefill = true;
  extended.extensions = "a";
  std::vector<std::string> keys = {plain,
                                   key_of(R"({"n":2})", task),
                                   key_of(R"({"n":2})", shape),
                                   key_of(R"({"n":2})", variant),
                                   key_of(R"({"n":2})", prefill),
                                   key_of(R"({"n":2})", extended)};
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

TEST(CaptureKey, special_numbers_of_python_are_read) {
  EXPECT_EQ(canonical(R"({"a":[0.0, Infinity],"b":-Infinity,"c":NaN,"d":"NaN \" Infinity"})"),
            R"({"a":[0.0,{"__float__":"Infinity"}],"b":{"__float__":"-Infinity"},"c":{"__float__":"NaN"},)"
            R"("d":"NaN \" Infinity"})");
}

TEST(CaptureKey, code_of_the_folder_counts_where_it_is_used) {
  TestFolder folder;
  CaptureRequest request;
  request.model = folder.path();
  folder.write("config.json", R"({"auto_map":{"AutoModel":"m.M"}})");
  folder.write("m.py", "a = 1");
  std::string before = capture_key(request).value_or("");
  folder.write("m.py", "a = 2");
  std::string changed = capture_key(request).value_or("");
  EXPECT_NE(before, changed);
  request.trust_remote_code = true;
  EXPECT_NE(capture_key(request).value_or(""), changed);
  folder.write("config.json", "{}");
  std::string without = capture_key(request).value_or("");
  folder.write("m.py", "a = 3");
  EXPECT_EQ(capture_key(request).value_or(""), without);
}

TEST(CaptureKey, given_inputs_count_by_what_is_in_them) {
  TestFolder folder;
  CaptureRequest request;
  request.model = folder.path();
  folder.write("config.json", "{}");
  const std::string without = capture_key(request).value_or("");
  folder.write("one.npz", "a");
  folder.write("other.npz", "a");
  request.inputs = {folder.path() / "one.npz"};
  const std::string with_one = capture_key(request).value_or("");
  EXPECT_NE(with_one, without);
  request.inputs = {folder.path() / "other.npz"};
  EXPECT_EQ(capture_key(request).value_or(""), with_one);
  EXPECT_TRUE(for_weight_plan(request).inputs.empty());
  request.inputs = {folder.path() / "none.npz"};
  expect_error(capture_key(request), ErrorCode::kNotFound, "none.npz");
}

TEST(CaptureKey, rejects_what_is_no_configuration) {
  TestFolder folder;
  CaptureRequest request;
  request.model = folder.path();
  expect_error(capture_key(request), ErrorCode::kNotFound, "config.json");
  folder.write("config.json", "[1]");
  expect_error(capture_key(request), ErrorCode::kCorruptFile, "not a JSON object");
  folder.write("config.json", "{");
  expect_error(capture_key(request), ErrorCode::kCorruptFile, "config.json");
}

}  // namespace
}  // namespace argosy
