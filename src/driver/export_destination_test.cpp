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

}  // namespace
}  // namespace argosy
