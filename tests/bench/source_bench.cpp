// Throughput of casts, transposes and recipes on one core. Prints MB of input per second of CPU time,
// which other work on the machine disturbs less than the clock on the wall.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <vector>

#include "base/text.h"
#include "tensor/cast.h"
#include "tensor/permute.h"
#include "tensor/quantize_source.h"
#include "tensor/source.h"

namespace argosy {
namespace {

void report(const char* name, size_t bytes, const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    std::clock_t begin = std::clock();
    work();
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  std::printf("%-52s %8.0f MB/s\n", name, static_cast<double>(bytes) / best / 1e6);
}

std::vector<std::byte> some_floats(size_t count) {
  std::vector<std::byte> bytes(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    float value = static_cast<float>(static_cast<int>(i * 7919 % 20011) - 10000) * 1e-3f;
    std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof(value));
  }
  return bytes;
}

void bench_casts() {
  constexpr size_t kCount = 4096;  // in the cache: the loops, not the memory
  constexpr int kRepeats = 4096;
  std::vector<std::byte> floats = some_floats(kCount * 2), out(kCount * 8);
  constexpr DType kTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16};
  for (DType from : kTypes) {
    for (DType to : kTypes) {
      if (from == to) continue;
      std::span<const std::byte> in = std::span(floats).first(kCount * static_cast<size_t>(bits_of(from)) / 8);
      std::span<std::byte> result = std::span(out).first(kCount * static_cast<size_t>(bits_of(to)) / 8);
      for (CastPath path : {CastPath::kBest, CastPath::kPortable}) {
        auto name =
            format("cast {} to {}, {}", to_text(from), to_text(to), path == CastPath::kBest ? "best" : "portable");
        report(name.c_str(), in.size() * kRepeats, [&] {
          for (int i = 0; i < kRepeats; ++i) cast_elements(from, in, to, result, path);
        });
      }
    }
  }
}

void bench_permute() {
  constexpr int64_t kSide = 4096;
  for (int64_t size : {1, 2, 4, 8, 16}) {
    std::vector<std::byte> in(static_cast<size_t>(kSide * kSide / 4 * size)), out(in.size());
    auto name = format("transpose 4096x1024 of {} bytes", size);
    report(name.c_str(), in.size(),
           [&] { permute_dims(in, std::vector<int64_t>{kSide, kSide / 4}, std::vector<int>{1, 0}, size, out); });
  }
}

void bench_recipes() {
  constexpr int64_t kRows = 4096, kColumns = 14336;
  std::vector<std::byte> bytes = some_floats(kRows * kColumns);
  TensorSourcePtr matrix = *borrowed(bytes, DType::kF32, {kRows, kColumns}, "matrix");
  auto stream = [&](const char* name, const TensorSource& source, size_t scratch_bytes) {
    report(name, bytes.size(), [&] {
      auto status = source.stream_to([](std::span<const std::byte>) { return Status{}; }, scratch_bytes);
      if (!status) std::fputs(to_text(status.error()).c_str(), stderr);
    });
  };
  TensorSourcePtr cast = *converted(matrix, DType::kBF16);
  TensorSourcePtr turned = *transposed(matrix, {1, 0});
  TensorSourcePtr turned_cast = *converted(turned, DType::kBF16);
  TensorSourcePtr cast_turned = *transposed(cast, {1, 0});
  for (size_t megabytes : {1, 8, 64}) {
    size_t scratch = megabytes << 20;
    stream(format("copy, scratch {} MB", megabytes).c_str(), *matrix, scratch);
    stream(format("cast to bf16, scratch {} MB", megabytes).c_str(), *cast, scratch);
    stream(format("transpose 4096x14336, scratch {} MB", megabytes).c_str(), *turned, scratch);
    stream(format("transpose, then cast to bf16, scratch {} MB", megabytes).c_str(), *turned_cast, scratch);
    stream(format("cast to bf16, then transpose, scratch {} MB", megabytes).c_str(), *cast_turned, scratch);
  }
  std::vector<ByteSink> sinks(2, [](std::span<const std::byte>) { return Status{}; });
  SourceGroupPtr quantized = *quantized_blocks(matrix, {.method = {.bits = 8}});
  report("quantize to int8, blocks of 32, scratch 64 MB", bytes.size(),
         [&] { (void)quantized->stream_to(sinks, size_t{64} << 20); });
}

}  // namespace
}  // namespace argosy

int main() {
  argosy::bench_casts();
  argosy::bench_permute();
  argosy::bench_recipes();
}
