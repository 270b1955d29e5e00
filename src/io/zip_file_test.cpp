#include "io/zip_file.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/text.h"
#include "io/test_folder.h"
#include "io/zip.h"

namespace argosy {
namespace {

std::vector<std::byte> numbered_bytes(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  return bytes;
}

/// Texts between tensors: some in files, larger than a piece, transposed, empty.
class ZipFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::byte> bytes = numbered_bytes(size_t{20} << 20);
    std::filesystem::path path =
        folder_.write("weights", std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    std::shared_ptr<const ReadFile> file = *ReadFile::open(path, ReadFile::Hold::kOnDemand);
    sources_.push_back(*file_slice(file, 3, DType::kU8, {(int64_t{17} << 20) + 5}));
    sources_.push_back(*transposed(*file_slice(file, 64, DType::kF32, {1024, 1500}), {1, 0}));
    sources_.push_back(*file_slice(file, 0, DType::kF32, {0, 7}));
    sources_.push_back(*converted(*file_slice(file, 8, DType::kBF16, {3000, 1000}), DType::kF32));
    items_.push_back({"root/first", "text", nullptr});
    for (size_t i = 0; i < sources_.size(); ++i) {
      items_.push_back({names_[i], "", sources_[i].get()});
      items_.push_back({names_[i + sources_.size()], "more text", nullptr});
    }
  }

  Status write(std::string_view name, const TensorWriteOptions& options) {
    ARGOSY_TRY(OutputFile file, OutputFile::create(folder_ / name, Overwrite::kRefuse));
    ARGOSY_TRY_STATUS(write_zip_file(items_, file, options));
    return file.commit();
  }

  TestFolder folder_;
  std::vector<std::string> names_ = {"root/a", "root/b", "root/c", "root/d", "root/e", "root/f", "root/g", "root/h"};
  std::vector<TensorSourcePtr> sources_;
  std::vector<ZipItem> items_;
};

TEST_F(ZipFileTest, gives_the_bytes_of_the_streaming_writer_with_any_number_of_threads) {
  std::string expected;
  ZipWriter writer([&](std::span<const std::byte> more) -> Status {
    expected.append(reinterpret_cast<const char*>(more.data()), more.size());
    return {};
  });
  for (const ZipItem& item : items_) {
    ASSERT_TRUE(item.source == nullptr ? writer.add(item.name, item.text)
                                       : writer.add(item.name, *item.source, size_t{8} << 20));
  }
  ASSERT_TRUE(writer.finish());
  for (int threads : {1, 2, 5}) {
    TensorWriteOptions options;
    options.threads = threads;
    std::string name = format("out-{}", threads);
    Status status = write(name, options);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_TRUE(folder_.read(name) == expected) << threads;
  }
}

TEST_F(ZipFileTest, tells_how_far_it_has_come) {
  TensorWriteOptions options;
  uint64_t last = 0, total = 0;
  for (const TensorSourcePtr& source : sources_) total += static_cast<uint64_t>(source->bytes());
  options.progress = [&](uint64_t done) {
    EXPECT_GE(done, last);
    last = done;
  };
  ASSERT_TRUE(write("out", options));
  EXPECT_EQ(last, total);
}

TEST_F(ZipFileTest, rejects_names_that_occur_twice) {
  items_.push_back(items_[1]);
  expect_error(write("out", {}), ErrorCode::kInvalidInput, "two zip entries of one name");
}

TEST_F(ZipFileTest, names_the_tensor_that_cannot_be_read) {
  TensorSourcePtr unknown = *shape_only(DType::kF32, {4}, "w");
  items_.push_back({"root/unknown", "", unknown.get()});
  TensorWriteOptions options;
  options.threads = 3;
  Status status = write("out", options);
  expect_error(status, ErrorCode::kNotFound, "not known");
  EXPECT_NE(to_text(status.error()).find("root/unknown"), std::string::npos);
  EXPECT_EQ(folder_.count(), 1u);
}

TEST_F(ZipFileTest, notices_a_file_that_changed_meanwhile) {
  folder_.write("weights", "short");
  expect_error(write("out", {}), ErrorCode::kIo, "changed");
}

}  // namespace
}  // namespace argosy
