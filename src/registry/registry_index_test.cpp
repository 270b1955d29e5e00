#include "registry/registry_index.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace argosy {
namespace {

const std::string kKey(64, 'a'), kHash(64, 'b');

RegistryIndex an_index() { return {CacheKind::kWeightPlan, kKey, 3, {{kHash, 10}, {std::string(64, 'c'), 20}}}; }

std::string refusal(const std::string& text) {
  auto index = RegistryIndex::parse(text, "x");
  return index ? "" : index.error().message;
}

/// The text of an index with a part replaced.
std::string with(std::string_view part, std::string_view other) {
  std::string text = an_index().text();
  const size_t place = text.find(part);
  EXPECT_NE(place, std::string::npos) << part;
  return text.replace(place, part.size(), other);
}

TEST(RegistryIndex, is_read_as_it_was_written) {
  auto index = RegistryIndex::parse(an_index().text(), "x");
  ASSERT_TRUE(index.has_value()) << index.error().message;
  EXPECT_EQ(index->kind, CacheKind::kWeightPlan);
  EXPECT_EQ(index->key, kKey);
  EXPECT_EQ(index->serial, 3U);
  EXPECT_EQ(index->entries, an_index().entries);
}

TEST(RegistryIndex, names_of_its_files) {
  EXPECT_EQ(index_name(CacheKind::kCapture, kKey), "captures/" + kKey + "/index.json");
  EXPECT_EQ(signature_name(CacheKind::kCheck, kKey), "checks/" + kKey + "/index.json.sig");
  for (CacheKind kind : {CacheKind::kCapture, CacheKind::kWeightPlan, CacheKind::kCheck}) {
    EXPECT_TRUE(is_registry_name(index_name(kind, kKey)));
    EXPECT_TRUE(is_registry_name(signature_name(kind, kKey)));
    EXPECT_TRUE(is_registry_name(cache_name(kind, kKey, kHash)));
  }
  for (const std::string& name : {std::string("index.json"), std::string("captures/index.json"), "captures/" + kKey,
                                  "captures/" + kKey + "/../index.json", "others/" + kKey + "/index.json",
                                  "captures/" + kKey + "/index.json.sig.sig", "captures/" + kKey + "/name.txt",
                                  "/captures/" + kKey + "/index.json", std::string()})
    EXPECT_FALSE(is_registry_name(name)) << name;
}

TEST(RegistryIndex, rejects_what_is_no_index) {
  EXPECT_EQ(refusal(""), "x is no index of a registry: it is no JSON");
  EXPECT_EQ(refusal("{"), "x is no index of a registry: it is no JSON");
  EXPECT_EQ(refusal("[]"), "x is no index of a registry: its format is not \"argosy-registry\"");
  EXPECT_EQ(refusal(with("argosy-registry", "other")),
            "x is no index of a registry: its format is not \"argosy-registry\"");
  EXPECT_EQ(refusal(with("\"version\": 1", "\"version\": 2")), "x is of a version that is not read");
  EXPECT_EQ(refusal(std::string(kMaxIndexBytes + 1, ' ')), "x is no index of a registry: it has 262145 bytes");
}

TEST(RegistryIndex, rejects_other_keys_and_numbers) {
  const std::string lacks = "x is no index of a registry: it lacks of, serial or entries";
  EXPECT_EQ(refusal(with("plans/", "../plans/")), lacks);
  EXPECT_EQ(refusal(with("plans/", "other/")), lacks);
  EXPECT_EQ(refusal(with("aaaa", "aaa")), lacks);
  EXPECT_EQ(refusal(with("\"serial\": 3", "\"serial\": 0")), lacks);
  EXPECT_EQ(refusal(with("\"serial\": 3", "\"serial\": -3")), lacks);
  EXPECT_EQ(refusal(with("\"entries\"", "\"others\"")), lacks);
}

TEST(RegistryIndex, rejects_entries_that_are_none) {
  EXPECT_EQ(refusal(with(kHash, "../../../etc/passwd")),
            "x is no index of a registry: \"../../../etc/passwd\" is no hash");
  EXPECT_EQ(refusal(with(kHash, std::string(63, 'b') + "/")),
            format("x is no index of a registry: \"{}/\" is no hash", std::string(63, 'b')));
  EXPECT_EQ(refusal(with(kHash, std::string(64, 'c'))), "x is no index of a registry: it has an entry twice");
  EXPECT_EQ(refusal(with("\"bytes\": 10", "\"bytes\": 0")), "x is no index of a registry: an entry of it has 0 bytes");
  EXPECT_EQ(refusal(with("\"bytes\": 10", "\"bytes\": 9999999999999")),
            "x is no index of a registry: an entry of it has 9999999999999 bytes");
  RegistryIndex index = an_index();
  index.entries.clear();
  EXPECT_EQ(refusal(index.text()), "x is no index of a registry: it has no entries");
}

TEST(RegistryIndex, rejects_every_other_form) {
  const std::string form = "x is no index of a registry: it is not in the form that argosy writes";
  EXPECT_EQ(refusal(an_index().text() + "\n"), form);
  EXPECT_EQ(refusal(with("\"serial\": 3", "\"serial\":  3")), form);
  EXPECT_EQ(refusal(with("\"serial\": 3", "\"serial\": 3, \"serial\": 4")), form);
  EXPECT_EQ(refusal(with("\"bytes\": 10", "\"bytes\": 10, \"name\": \"x\"")), form);
}

}  // namespace
}  // namespace argosy
