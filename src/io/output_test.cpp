#include "io/output.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/file.h"
#include "io/link_file.h"
#include "io/temporary_name.h"
#include "io/test_folder.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

void expect_ok(const Status& status) { EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message); }

TEST(OutputFile, appears_only_when_committed) {
  TestFolder folder;
  auto file = *OutputFile::create(folder / "x", Overwrite::kRefuse);
  expect_ok(file.write("hello "));
  expect_ok(file.sink()(std::as_bytes(std::span(std::string_view("world")))));
  EXPECT_EQ(file.size(), 11u);
  EXPECT_FALSE(fs::exists(folder / "x"));
  expect_ok(file.commit());
  EXPECT_EQ(folder.read("x"), "hello world");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(OutputFile, leaves_nothing_without_commit) {
  TestFolder folder;
  {
    auto file = *OutputFile::create(folder / "x", Overwrite::kRefuse);
    expect_ok(file.write("hello"));
    EXPECT_EQ(folder.count(), 1u);
  }
  EXPECT_EQ(folder.count(), 0u);
}

TEST(OutputFile, writes_at_positions) {
  TestFolder folder;
  auto file = *OutputFile::create(folder / "x", Overwrite::kRefuse);
  expect_ok(file.write_at(4, std::as_bytes(std::span(std::string_view("4567")))));
  expect_ok(file.write("0123"));
  expect_ok(file.commit());
  EXPECT_EQ(folder.read("x"), "01234567");
}

TEST(OutputFile, copies_from_files) {
  TestFolder folder;
  std::string bytes(3 << 20, 'a');
  for (size_t i = 0; i < bytes.size(); i += 1000) bytes[i] = static_cast<char>(i);
  auto path = folder.write("in", bytes);
  auto file = *OutputFile::create(folder / "out", Overwrite::kRefuse);
  expect_ok(file.write("<"));
  expect_ok(file.copy_from({path.native(), 5, (2 << 20) + 3}));
  auto source = *file_slice(*ReadFile::open(path), 7, DType::kU8, {100});
  expect_ok(file.append(*source, 1 << 20));
  expect_ok(file.commit());
  EXPECT_EQ(folder.read("out"), "<" + bytes.substr(5, (2 << 20) + 3) + bytes.substr(7, 100));
}

TEST(OutputFile, rejects_a_range_beyond_the_end) {
  TestFolder folder;
  auto path = folder.write("in", "abc");
  auto file = *OutputFile::create(folder / "out", Overwrite::kRefuse);
  expect_error(file.copy_from({path.native(), 1, 3}), ErrorCode::kIo, "ends at byte 3");
}

TEST(OutputFile, replaces_when_asked) {
  TestFolder folder;
  folder.write("x", "old");
  expect_error(OutputFile::create(folder / "x", Overwrite::kRefuse), ErrorCode::kInvalidInput, "exists already");
  auto file = *OutputFile::create(folder / "x", Overwrite::kReplace);
  expect_ok(file.write("new"));
  EXPECT_EQ(folder.read("x"), "old");
  expect_ok(file.commit());
  EXPECT_EQ(folder.read("x"), "new");
}

TEST(OutputFile, rejects_a_destination_that_came_meanwhile) {
  TestFolder folder;
  auto file = *OutputFile::create(folder / "x", Overwrite::kRefuse);
  folder.write("x", "other");
  expect_error(file.commit(), ErrorCode::kInvalidInput, "exists already");
  EXPECT_EQ(folder.read("x"), "other");
}

TEST(OutputFile, rejects_destinations_that_cannot_be) {
  TestFolder folder;
  fs::create_directory(folder / "d");
  expect_error(OutputFile::create(folder / "d", Overwrite::kReplace), ErrorCode::kInvalidInput, "is a folder");
  expect_error(OutputFile::create(folder / "none/x", Overwrite::kRefuse), ErrorCode::kNotFound, "none/x");
  expect_error(OutputFile::create(folder / "d/..", Overwrite::kRefuse), ErrorCode::kInvalidInput, "does not name");
  expect_error(OutputFile::create("", Overwrite::kRefuse), ErrorCode::kInvalidInput, "does not name");
}

TEST(OutputFile, reports_failed_writes_with_the_path) {
  TestFolder folder;
  // In a child, since the limit cannot be raised again.
  pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto file = *OutputFile::create(folder / "x", Overwrite::kRefuse);
    Status status = file.write(std::string(2000, 'x'));
    bool is_right = !status && status.error().code == ErrorCode::kIo && !status.error().hint.empty() &&
                    status.error().message.find((folder / "x").native()) != std::string::npos;
    ::_exit(is_right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// The id of a process that has ended.
pid_t ended_process() {
  pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

/// The name that a process gives its temporary of this destination.
std::string temporary_of(pid_t process, const fs::path& destination) {
  std::string name = temporary_name(destination).numbered(0).filename().native();
  std::string pid = "-" + std::to_string(::getpid()) + "-";
  return name.replace(name.find(pid), pid.size(), "-" + std::to_string(process) + "-");
}

TEST(OutputFile, removes_temporaries_of_killed_runs) {
  TestFolder folder;
  std::string stale = temporary_of(ended_process(), folder / "x"), alive = temporary_of(1, folder / "x");
  folder.write(stale, "left over");
  folder.write(alive, "of a process that lives");
  folder.write(stale + "-not", "not ours");
  auto file = *OutputFile::create(folder / "x", Overwrite::kRefuse);
  EXPECT_FALSE(fs::exists(folder / stale));
  EXPECT_TRUE(fs::exists(folder / alive));
  EXPECT_TRUE(fs::exists(folder / (stale + "-not")));
}

TEST(OutputFolder, appears_only_when_committed) {
  TestFolder folder;
  auto output = *OutputFolder::create(folder / "a/b/out/", Overwrite::kRefuse);
  fs::create_directory(output.path() / "sub");
  std::ofstream(output.path() / "sub/file") << "text";
  EXPECT_FALSE(fs::exists(folder / "a/b/out"));
  expect_ok(output.commit());
  EXPECT_EQ(folder.read("a/b/out/sub/file"), "text");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "a/b"), {}), 1);
}

TEST(OutputFolder, leaves_nothing_without_commit) {
  TestFolder folder;
  {
    auto output = *OutputFolder::create(folder / "out", Overwrite::kRefuse);
    std::ofstream(output.path() / "file") << "text";
  }
  EXPECT_EQ(folder.count(), 0u);
}

TEST(OutputFolder, replaces_when_asked) {
  TestFolder folder;
  folder.write("out/old", "old");
  expect_error(OutputFolder::create(folder / "out", Overwrite::kRefuse), ErrorCode::kInvalidInput, "exists already");
  auto output = *OutputFolder::create(folder / "out", Overwrite::kReplace);
  std::ofstream(output.path() / "new") << "new";
  EXPECT_TRUE(fs::exists(folder / "out/old"));
  expect_ok(output.commit());
  EXPECT_EQ(folder.read("out/new"), "new");
  EXPECT_FALSE(fs::exists(folder / "out/old"));
  EXPECT_EQ(folder.count(), 1u);
}

TEST(OutputFolder, rejects_a_destination_that_came_meanwhile) {
  TestFolder folder;
  auto output = *OutputFolder::create(folder / "out", Overwrite::kRefuse);
  fs::create_directory(folder / "out");
  expect_error(output.commit(), ErrorCode::kInvalidInput, "exists already");
}

TEST(OutputFolder, rejects_replacing_a_file) {
  TestFolder folder;
  folder.write("out", "a file");
  expect_error(OutputFolder::create(folder / "out", Overwrite::kReplace), ErrorCode::kInvalidInput, "is a file");
}

TEST(OutputFiles, appear_together_and_main_last) {
  TestFolder folder;
  folder.write("m.onnx", "old");
  folder.write("other", "kept");
  {
    auto files = *OutputFiles::create(folder / "m.onnx", Overwrite::kReplace);
    auto write = [&](const char* name, const char* text) {
      auto file = *OutputFile::create(files.path() / name, Overwrite::kRefuse);
      expect_ok(file.write(text));
      expect_ok(file.commit());
    };
    write("m.onnx", "new");
    write("m.onnx.data", "weights");
    EXPECT_EQ(folder.read("m.onnx"), "old");
    EXPECT_FALSE(fs::exists(folder / "m.onnx.data"));
    expect_ok(files.commit());
  }
  EXPECT_EQ(folder.read("m.onnx"), "new");
  EXPECT_EQ(folder.read("m.onnx.data"), "weights");
  EXPECT_EQ(folder.count(), 3u);
}

TEST(OutputFiles, leave_nothing_without_commit) {
  TestFolder folder;
  {
    auto files = *OutputFiles::create(folder / "deep/m.onnx", Overwrite::kReplace);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "deep"), fs::directory_iterator()), 0);
}

TEST(OutputFiles, show_an_interrupted_replacement_until_it_is_made_good) {
  TestFolder folder;
  fs::path main = folder / "m.onnx";
  std::string left = temporary_of(ended_process(), main);
  for (const std::string& name : {std::string("m.onnx.data"), left + "/m.onnx", left + "/.old/m.onnx"})
    folder.write(name, "of the run that was killed");
  {
    auto files = *OutputFiles::create(main, Overwrite::kReplace);  // killed, or failed
  }
  EXPECT_TRUE(is_interrupted_replacement(folder / left, main));
  EXPECT_FALSE(fs::exists(folder / left / "m.onnx") || fs::exists(folder / left / ".old/m.onnx"));
  auto files = *OutputFiles::create(main, Overwrite::kReplace);
  for (const char* name : {"m.onnx", "m.onnx.data"}) std::ofstream(files.path() / name) << "new";
  expect_ok(files.commit());
  EXPECT_EQ(folder.read("m.onnx.data"), "new");
  EXPECT_EQ(folder.count(), 2u);
}

TEST(OutputFiles, rejects_what_is_there) {
  TestFolder folder;
  folder.write("m.onnx", "old");
  fs::create_directory(folder / "d");
  expect_error(OutputFiles::create(folder / "m.onnx", Overwrite::kRefuse), ErrorCode::kInvalidInput, "exists");
  expect_error(OutputFiles::create(folder / "d", Overwrite::kReplace), ErrorCode::kInvalidInput, "folder");
}

TEST(LinkFile, follows_symbolic_links) {
  TestFolder folder;
  folder.write("blob", "weights");
  fs::create_symlink("blob", folder / "model.safetensors");
  expect_ok(link_file(folder / "model.safetensors", folder / "linked"));
  EXPECT_FALSE(fs::is_symlink(folder / "linked"));
  EXPECT_EQ(folder.read("linked"), "weights");
}

TEST(LinkFile, rejects_what_cannot_be_linked) {
  TestFolder folder;
  folder.write("a", "1");
  folder.write("b", "2");
  expect_error(link_file(folder / "a", folder / "b"), ErrorCode::kIo, "link");
  expect_error(link_file(folder / "none", folder / "c"), ErrorCode::kNotFound, "none");
  EXPECT_EQ(folder.read("b"), "2");
  if (fs::exists("/dev/shm") && fs::space("/dev/shm").capacity != 0) {
    fs::path elsewhere = fs::path("/dev/shm") / folder.path().filename();
    expect_error(link_file(folder / "a", elsewhere), ErrorCode::kIo, "different file systems");
    EXPECT_FALSE(fs::exists(elsewhere));
  }
}

TEST(OutputFolder, asks_before_and_after_the_exchange) {
  TestFolder folder;
  folder.write("x/old", "old");
  auto replace = [&](const MayReplace& may_replace) {
    auto output = *OutputFolder::create(folder / "x", Overwrite::kReplace);
    std::ofstream(output.path() / "new") << "new";
    return output.commit(may_replace);
  };
  auto refuse = [](const std::string& why) { return fail(ErrorCode::kInvalidInput, why); };
  expect_error(replace([&](const fs::path&) -> Status { return refuse("before"); }), ErrorCode::kInvalidInput,
               "before");
  EXPECT_EQ(folder.read("x/old"), "old");
  // What is saved in the last moment before the exchange is found after it, and is back in its place.
  Status late = replace([&](const fs::path& old) -> Status {
    if (old == folder / "x") return folder.write("x/late", "mine"), Status();
    EXPECT_TRUE(fs::exists(folder / "x/new"));
    return fs::exists(old / "late") ? Status(refuse("after")) : Status();
  });
  expect_error(late, ErrorCode::kInvalidInput, "after");
  EXPECT_EQ(folder.read("x/late"), "mine");
  EXPECT_EQ(folder.read("x/old"), "old");
  EXPECT_FALSE(fs::exists(folder / "x/new"));
  EXPECT_EQ(folder.count(), 1u);
  expect_ok(replace([](const fs::path&) -> Status { return {}; }));
  EXPECT_EQ(folder.read("x/new"), "new");
  EXPECT_FALSE(fs::exists(folder / "x/late"));
  EXPECT_EQ(folder.count(), 1u);
}

TEST(OutputFiles, asks_of_each_file_before_anything_moves) {
  TestFolder folder;
  folder.write("m", "old");
  folder.write("m.data", "mine");
  auto output = *OutputFiles::create(folder / "m", Overwrite::kReplace);
  std::ofstream(output.path() / "m") << "new";
  std::ofstream(output.path() / "m.data") << "new";
  expect_error(output.commit([&](const fs::path& old) -> Status {
    if (old.filename() != "m.data") return {};
    return fail(ErrorCode::kInvalidInput, "data");
  }),
               ErrorCode::kInvalidInput, "data");
  EXPECT_EQ(folder.read("m"), "old");
  EXPECT_EQ(folder.read("m.data"), "mine");
}

}  // namespace
}  // namespace argosy
