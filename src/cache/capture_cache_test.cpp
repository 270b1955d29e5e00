#include "cache/capture_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "cache/cache_contents.h"
#include "cache/obtain.h"
#include "io/test_folder.h"

namespace argosy {
namespace {

const std::string kKey(64, 'a');
constexpr std::string_view kPlan =
    R"({"format":"argosy-weight-plan","version":1,"model_class":"M","checkpoint_hash":"","weights":[],"missing":[],)"
    R"("unexpected":[],"versions":{"torch":"2.13.0"},"task":null})";

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

CacheEntry add(const CaptureCache& cache, std::string_view text, const std::string& key = kKey) {
  auto temporary = cache.temporary(CacheKind::kWeightPlan, key);
  EXPECT_TRUE(temporary.has_value());
  write_file(*temporary, text);
  auto entry = cache.add(CacheKind::kWeightPlan, key, *temporary);
  EXPECT_TRUE(entry.has_value()) << (entry ? "" : to_text(entry.error()));
  return entry.value_or(CacheEntry{});
}

void set_age(const CacheEntry& entry, int hours) {
  std::filesystem::last_write_time(entry.path,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
}

/// What there is to do for a plan; how it is made is the test's.
CacheWork plan_work() {
  return {.kind = CacheKind::kWeightPlan,
          .key = kKey,
          .name = {},
          .renew = false,
          .make = {},
          .on_wait = {},
          .on_damaged = {}};
}

std::string found(const CaptureCache& cache) {
  auto entry = cache.find(CacheKind::kWeightPlan, kKey);
  return entry && *entry ? (*entry)->hash : "";
}

TEST(CaptureCache, the_newest_intact_entry_is_found) {
  TestFolder folder;
  CaptureCache cache(folder / "cache");
  EXPECT_EQ(found(cache), "");
  CacheEntry old = add(cache, "old"), recent = add(cache, "recent");
  set_age(old, 5);
  EXPECT_EQ(found(cache), recent.hash);
  set_age(recent, 9);
  EXPECT_EQ(found(cache), old.hash);
  write_file(old.path, "bad");
  set_age(old, 1);
  EXPECT_EQ(found(cache), recent.hash);
  std::vector<std::filesystem::path> damaged;
  ASSERT_TRUE(cache.find(CacheKind::kWeightPlan, kKey, &damaged).has_value());
  EXPECT_EQ(damaged, std::vector<std::filesystem::path>{old.path});
}

TEST(CaptureCache, kinds_and_keys_are_apart) {
  TestFolder folder;
  CaptureCache cache(folder.path());
  add(cache, "x", std::string(64, 'b'));
  EXPECT_EQ(found(cache), "");
  auto other = cache.find(CacheKind::kCapture, std::string(64, 'b'));
  ASSERT_TRUE(other.has_value());
  EXPECT_FALSE(other->has_value());
}

TEST(CaptureCache, names_of_entries_are_read_back) {
  std::string hash(64, 'c');
  auto entry = parse_cache_name(cache_name(CacheKind::kCapture, kKey, hash));
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->key, kKey);
  EXPECT_EQ(entry->hash, hash);
  EXPECT_EQ(entry->kind, CacheKind::kCapture);
  for (std::string name : {"captures/x/y.capture", "../captures/a/b.capture", "captures", ""}) {
    EXPECT_FALSE(parse_cache_name(name).has_value()) << name;
  }
  EXPECT_FALSE(parse_cache_name("captures/" + kKey + "/" + hash + ".json").has_value());
}

TEST(CaptureCache, a_key_has_the_name_of_its_first_model) {
  TestFolder folder;
  CaptureCache cache(folder.path());
  CacheEntry entry = add(cache, "x");
  EXPECT_EQ(cache.name_of(entry), "");
  cache.set_name(entry.kind, entry.key, "org/base");
  cache.set_name(entry.kind, entry.key, "org/fine-tune");
  EXPECT_EQ(cache.name_of(entry), "org/base");
  EXPECT_EQ(cache.list()->size(), 1u);
  ASSERT_TRUE(prune(cache, {}).has_value());
  EXPECT_EQ(cache.name_of(entry), "org/base");
  ASSERT_TRUE(prune(cache, {.all = true, .age = {}, .dry_run = false}).has_value());
  EXPECT_FALSE(std::filesystem::exists(folder / "plans" / kKey));
}

TEST(CaptureCache, models_are_called_as_users_call_them) {
  EXPECT_EQ(model_name("/home/me/models/llama/"), "llama");
  EXPECT_EQ(model_name("/cache/hub/models--org--own--name/snapshots/0123abc"), "org/own--name");
  EXPECT_EQ(model_name("/cache/hub/models--gpt2/snapshots/0123abc"), "gpt2");
  EXPECT_EQ(model_name("."), std::filesystem::current_path().filename().string());
}

TEST(Obtain, makes_what_is_not_there_and_only_then) {
  TestFolder folder;
  CaptureCache cache(folder.path());
  int made = 0;
  CacheWork work = plan_work();
  work.make = [&](const std::filesystem::path& path) -> Status {
    write_file(path, std::string(kPlan) + std::string(static_cast<size_t>(++made), ' '));
    return {};
  };
  auto first = obtain(cache, work), second = obtain(cache, work);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(first->was_cached);
  EXPECT_TRUE(second->was_cached);
  EXPECT_EQ(made, 1);
  work.renew = true;
  ASSERT_TRUE(obtain(cache, work).has_value());
  EXPECT_EQ(made, 2);
}

TEST(Obtain, what_fails_or_cannot_be_read_does_not_enter_the_cache) {
  TestFolder folder;
  CaptureCache cache(folder.path());
  CacheWork work = plan_work();
  work.make = [](const std::filesystem::path& path) -> Status {
    write_file(path, "half");
    return fail(ErrorCode::kIo, "broke");
  };
  expect_error(obtain(cache, work), ErrorCode::kIo, "broke");
  work.make = [](const std::filesystem::path& path) -> Status {
    write_file(path, "{}");
    return {};
  };
  expect_error(obtain(cache, work), ErrorCode::kCorruptFile, "format");
  EXPECT_TRUE(cache.list()->empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder / "plans" / kKey));
}

TEST(Obtain, several_processes_make_it_once) {
  TestFolder folder;
  CaptureCache cache(folder.path());
  std::vector<pid_t> children;
  for (int i = 0; i < 10; ++i) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    CacheWork work = plan_work();
    work.make = [&](const std::filesystem::path& path) -> Status {
      usleep(200'000);
      write_file(path, kPlan);
      write_file(folder / ("made-" + std::to_string(getpid())), "");
      return {};
    };
    _exit(obtain(cache, work).has_value() ? 0 : 1);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  size_t made = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    made += file.path().filename().string().starts_with("made-");
  }
  EXPECT_EQ(made, 1u);
  EXPECT_EQ(cache.list()->size(), 1u);
}

TEST(Obtain, a_process_that_died_with_the_lock_blocks_nobody) {
  TestFolder folder;
  CaptureCache cache(folder.path());
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto lock = cache.lock(CacheKind::kWeightPlan, kKey, {});
    auto temporary = cache.temporary(CacheKind::kWeightPlan, kKey);
    write_file(*temporary, "half");
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  bool has_waited = false;
  auto lock = cache.lock(CacheKind::kWeightPlan, kKey, [&] { has_waited = true; });
  EXPECT_TRUE(lock.has_value());
  EXPECT_FALSE(has_waited);
  // and what it left behind goes
  ASSERT_TRUE(cache.temporary(CacheKind::kWeightPlan, kKey).has_value());
  EXPECT_TRUE(std::filesystem::is_empty(folder / "plans" / kKey));
}

TEST(CacheContents, entries_describe_themselves) {
  TestFolder folder;
  auto description = describe(add(CaptureCache(folder.path()), kPlan));
  ASSERT_TRUE(description.has_value());
  EXPECT_EQ(description->model_class, "M");
  EXPECT_EQ(description->torch, "2.13.0");
  EXPECT_EQ(description->task, "");
}

TEST(CacheContents, prune_removes_what_is_damaged_superseded_or_old) {
  TestFolder folder;
  CaptureCache cache(folder.path());
  CacheEntry old = add(cache, "old"), recent = add(cache, "recent"), broken = add(cache, "broken");
  CacheEntry other = add(cache, "other", std::string(64, 'b'));
  set_age(old, 5);
  set_age(recent, 4);
  set_age(other, 100);
  write_file(broken.path, "x");
  PruneOptions options;
  options.dry_run = true;
  EXPECT_EQ(prune(cache, options)->size(), 2u);
  EXPECT_EQ(cache.list()->size(), 4u);
  options.dry_run = false;
  auto removed = prune(cache, options);
  ASSERT_EQ(removed->size(), 2u);
  EXPECT_EQ(removed->at(0).hash, broken.hash);
  EXPECT_EQ(removed->at(1).hash, old.hash);
  options.age = std::chrono::hours(50);
  EXPECT_EQ(prune(cache, options)->at(0).hash, other.hash);
  EXPECT_EQ(found(cache), recent.hash);
  options.all = true;
  EXPECT_EQ(prune(cache, options)->size(), 1u);
  EXPECT_TRUE(cache.list()->empty());
}

TEST(CacheContents, prune_removes_what_killed_processes_left) {
  TestFolder folder;
  CaptureCache cache(folder.path());
  CacheEntry entry = add(cache, "x");
  std::filesystem::path old = entry.path.parent_path() / "..new.part", recent = entry.path.parent_path() / ".new";
  folder.write("op_schemas.txt", "");
  write_file(old, "x");
  write_file(recent, "x");
  auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(50);
  std::filesystem::last_write_time(old, long_ago);
  std::filesystem::last_write_time(folder / "op_schemas.txt", long_ago);
  ASSERT_TRUE(prune(cache, {}).has_value());
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(recent));
  EXPECT_TRUE(std::filesystem::exists(folder / "op_schemas.txt"));
  EXPECT_EQ(found(cache), entry.hash);
}

TEST(CacheContents, what_is_exported_can_be_imported_elsewhere) {
  TestFolder folder;
  CaptureCache here(folder / "here"), there(folder / "there"), third(folder / "third");
  CacheEntry entry = add(here, kPlan);
  add(here, "second", std::string(64, 'b'));
  ASSERT_TRUE(export_entries(*here.list(), folder / "cache.zip").has_value());
  auto added = import_entries(there, folder / "cache.zip");
  ASSERT_TRUE(added.has_value()) << to_text(added.error());
  EXPECT_EQ(added->size(), 2u);
  EXPECT_EQ(found(there), entry.hash);
  EXPECT_TRUE(import_entries(there, folder / "cache.zip")->empty());
  EXPECT_EQ(import_entries(third, folder / "here")->size(), 2u);
  EXPECT_EQ(found(third), entry.hash);
}

TEST(CacheContents, rejects_damaged_and_foreign_imports) {
  TestFolder folder;
  CaptureCache here(folder / "here"), there(folder / "there");
  CacheEntry entry = add(here, kPlan);
  write_file(entry.path, "other");
  expect_error(import_entries(there, folder / "here"), ErrorCode::kCorruptFile, "is damaged");
  expect_error(export_entries(*here.list(), folder / "x.zip").map([] { return 0; }), ErrorCode::kCorruptFile,
               "damaged");
  EXPECT_TRUE(there.list()->empty());
  std::filesystem::create_directories(folder / "empty");
  expect_error(import_entries(there, folder / "empty"), ErrorCode::kInvalidInput, "nothing of a cache");
}

}  // namespace
}  // namespace argosy
