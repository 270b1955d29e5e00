// The memory rule of recipes: stacks, transposes and casts 8 GB of sparse files into one file with 64 MB of scratch,
// and fails if the process ever held more than 200 MB. Usage: argosy_stream_bench <folder with 4 GB free>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "io/file.h"
#include "io/output.h"
#include "tensor/source.h"

namespace argosy {
namespace {

constexpr int64_t kExperts = 8, kRows = 16384, kColumns = 16384;  // f32: 1 GiB each
constexpr size_t kScratch = size_t{64} << 20;
constexpr long kMaxResident = 200'000;  // kB

Status run(const std::filesystem::path& folder) {
  std::vector<TensorSourcePtr> experts;
  for (int64_t i = 0; i < kExperts; ++i) {
    std::filesystem::path path = folder / format("sparse_{}.bin", i);
    std::ofstream(path).close();
    std::filesystem::resize_file(path, static_cast<uintmax_t>(kRows * kColumns * 4));
    ARGOSY_TRY(auto file, ReadFile::open(path));
    ARGOSY_TRY(TensorSourcePtr expert, file_slice(file, 0, DType::kF32, {kRows, kColumns}));
    experts.push_back(std::move(expert));
  }
  ARGOSY_TRY(TensorSourcePtr stack, stacked(std::move(experts), 0));
  ARGOSY_TRY(TensorSourcePtr turned, transposed(std::move(stack), {0, 2, 1}));
  ARGOSY_TRY(TensorSourcePtr cast, converted(std::move(turned), DType::kBF16));
  auto begin = std::chrono::steady_clock::now();
  ARGOSY_TRY(OutputFile out, OutputFile::create(folder / "out.bin", Overwrite::kReplace));
  ARGOSY_TRY_STATUS(out.append(*cast, kScratch));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  double read = static_cast<double>(kExperts * kRows * kColumns * 4);
  std::printf("%s: %.1f GB in %.1f s, %.0f MB/s\n", cast->recipe().substr(0, 40).c_str(), read / 1e9, seconds,
              read / seconds / 1e6);
  return {};
}

}  // namespace
}  // namespace argosy

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: argosy_stream_bench <folder>\n", stderr);
    return 2;
  }
  std::filesystem::path folder = std::filesystem::path(argv[1]) / "argosy_stream_bench";
  std::filesystem::create_directories(folder);
  auto status = argosy::run(folder);
  std::filesystem::remove_all(folder);
  if (!status) {
    std::fputs(to_text(status.error()).c_str(), stderr);
    return 1;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("peak resident memory %ld kB, at most %ld allowed\n", usage.ru_maxrss, argosy::kMaxResident);
  return usage.ru_maxrss <= argosy::kMaxResident ? 0 : 1;
}
