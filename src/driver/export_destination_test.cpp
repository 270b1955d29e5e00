#include "driver/export_destination.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"
#include "io/zip.h"

namespace argosy {
namespace {

std::string archive(std::string_view entry) {
  std::string bytes;
  ZipWriter writer([&](std::span<const std::byte> more) -> Status {
    bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
    return {};
  });
  EXPECT_TRUE(writer.add(entry, "{}") && writer.finish());
  return bytes;
}

TEST(ExportDestination, the_extension_decides_and_the_model_gives_a_name) {
  EXPECT_FALSE(export_destination("x/y.pt2", "m", ".pt2").is_folder);
  EXPECT_TRUE(export_destination("x/y", "m", ".pt2").is_folder);
  EXPECT_EQ(export_destination("", "org/name", ".pt2").path, "name-pt2");
  EXPECT_EQ(export_destination("", "some/models/llama", ".pt2").path, "llama-pt2");
  TestFolder folder;
  std::filesystem::path snapshot = folder / "models--org--name/snapshots/abc";
  std::filesystem::create_directories(snapshot);
  EXPECT_EQ(export_destination("", snapshot, ".pt2").path, "name-pt2");
  EXPECT_EQ(export_destination("", folder / "models--org--name/", ".pt2").path, "name-pt2");
}

TEST(ExportDestination, takes_what_is_new_empty_or_an_earlier_export) {
  TestFolder folder;
  EXPECT_TRUE(check_replaceable({folder / "new.pt2", false}));
  EXPECT_TRUE(check_replaceable({folder / "new", true}));
  EXPECT_TRUE(check_replaceable({folder.write("empty.pt2", ""), false}));
  std::filesystem::create_directory(folder / "empty");
  EXPECT_TRUE(check_replaceable({folder / "empty", true}));
  EXPECT_TRUE(check_replaceable({folder.write("own.pt2", archive("own/extra/argosy.json")), false}));
  folder.write("exports/decode.pt2", archive("decode/extra/argosy.json"));
  EXPECT_TRUE(check_replaceable({folder / "exports", true}));
  folder.write("models/decode.onnx", "any");
  folder.write("models/bundle.json", R"({"format": "argosy-onnx", "files": ["decode.onnx", "model.onnx.data"]})");
  EXPECT_TRUE(check_replaceable({folder / "models", true}));
}

TEST(ExportDestination, rejects_what_is_not_ours) {
  TestFolder folder;
  auto refused = [](const ExportDestination& destination, std::string_view part) {
    expect_error(check_replaceable(destination), ErrorCode::kInvalidInput, part);
  };
  refused({folder.write("text.pt2", "mine"), false}, "not written by argosy export");
  refused({folder.write("torch.pt2", archive("torch/archive_format")), false}, "not written by argosy export");
  folder.write("exports/decode.pt2", archive("decode/extra/argosy.json"));
  folder.write("exports/notes.txt", "mine");
  refused({folder / "exports", true}, "notes.txt");
  refused({folder.write("mine.onnx", "mine"), false}, "not written by argosy export");
  folder.write("models/bundle.json", R"({"format": "argosy-onnx", "files": ["decode.onnx"]})");
  folder.write("models/mine.onnx.data", "mine");
  refused({folder / "models", true}, "mine.onnx.data");
  folder.write("other/bundle.json", R"({"format": "other", "files": ["a"]})");
  folder.write("other/a", "mine");
  refused({folder / "other", true}, "which argosy export did not write");
  refused({folder / "exports", false}, "is a folder");
  refused({folder / "exports/notes.txt", true}, "is a file");
}

TEST(ExportDestination, leaves_empty_files_and_folders_to_their_owner) {
  TestFolder folder;
  auto refused = [&](std::string_view name, std::string_view part) {
    expect_error(check_replaceable({folder / std::string(name), true}), ErrorCode::kInvalidInput, part);
  };
  for (const char* name : {"file", "folder", "nested"}) {
    std::string base = name;
    folder.write(base + "/onnx/decode.onnx", "any");
    folder.write(base + "/bundle.json", R"({"format": "argosy-onnx", "files": ["onnx/decode.onnx"]})");
    EXPECT_TRUE(check_replaceable({folder / base, true}));
  }
  folder.write("file/empty.txt", "");
  refused("file", "\"empty.txt\"");
  std::filesystem::create_directory(folder / "folder/mine");
  refused("folder", "\"mine\"");
  std::filesystem::create_directory(folder / "nested/onnx/mine");
  refused("nested", "\"onnx/mine\"");
}

TEST(ExportDestination, rejects_what_appears_or_changes_while_an_export_is_made) {
  TestFolder folder;
  folder.write("bundle/README.md", "ours");
  folder.write("bundle/bundle.json", R"({"format": "argosy-onnx", "files": ["README.md", "later.txt"]})");
  ExportDestination destination = export_destination((folder / "bundle").string(), "m", ".onnx");
  EXPECT_TRUE(check_replaceable(destination));
  folder.write("bundle/README.md", "the user's words");
  expect_error(check_replaceable(destination), ErrorCode::kInvalidInput, "\"README.md\", which changed while");
  destination = export_destination((folder / "bundle").string(), "m", ".onnx");
  EXPECT_TRUE(check_replaceable(destination));
  folder.write("bundle/later.txt", "");  // by a listed name, and still not there when the export began
  expect_error(check_replaceable(destination), ErrorCode::kInvalidInput, "\"later.txt\", which changed while");
  // Another export, made meanwhile, replaces the whole folder.
  std::filesystem::rename(folder / "bundle", folder / "away");
  folder.write("bundle/README.md", "theirs");
  folder.write("bundle/bundle.json", R"({"format": "argosy-onnx", "files": ["README.md"]})");
  EXPECT_TRUE(check_replaceable(destination));
}

TEST(ExportDestination, data_beside_a_file_belongs_to_an_export_of_that_name_alone) {
  TestFolder folder;
  ExportDestination destination = export_destination((folder / "m.pt2").string(), "m", ".pt2");
  EXPECT_TRUE(check_replaceable_beside(destination, "m.data"));
  folder.write("m.data", "mine");
  expect_error(check_replaceable_beside(destination, "m.data"), ErrorCode::kInvalidInput, "belongs to no export");
  folder.write("m.pt2", archive("m/extra/argosy.json"));
  destination = export_destination((folder / "m.pt2").string(), "m", ".pt2");
  EXPECT_TRUE(check_replaceable_beside(destination, "m.data"));
  EXPECT_TRUE(check_replaceable(destination));
  folder.write("m.data", "more of mine");
  expect_error(check_replaceable_beside(destination, "m.data"), ErrorCode::kInvalidInput, "changed while");
  folder.write("m.pt2", archive("m/extra/argosy.json") + " ");
  EXPECT_FALSE(check_replaceable(destination));
}

}  // namespace
}  // namespace argosy
