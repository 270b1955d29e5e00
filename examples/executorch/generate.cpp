// Greedy generation with a program for text generation:
//   generate MODEL.pte COUNT TOKEN…      prints the tokens that follow
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace {

using executorch::extension::from_blob;
using executorch::extension::Module;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Program;

[[noreturn]] void stop(const std::string& what, Error error = Error::Ok) {
  std::fprintf(stderr, "generate: %s (0x%x)\n", what.c_str(), static_cast<unsigned>(error));
  std::exit(1);
}

/// The numbers that a method without inputs returns; none if the program lacks it.
std::vector<int64_t> constants(Module& module, const std::string& name) {
  auto names = module.method_names();
  if (!names.ok() || names->count(name) == 0) return {};
  auto values = module.execute(name);
  if (!values.ok()) stop("cannot call " + name, values.error());
  std::vector<int64_t> result;
  for (const EValue& each : *values) {
    if (each.isInt()) result.push_back(each.toInt());
  }
  return result;
}

/// The next token after these, which begin at `position`.
int64_t next_token(Module& module, std::vector<int64_t>& tokens, int64_t position) {
  std::vector<int64_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), position);
  auto count = static_cast<int>(tokens.size());
  auto ids = from_blob(tokens.data(), {1, count}, executorch::aten::ScalarType::Long);
  auto places = from_blob(positions.data(), {count}, executorch::aten::ScalarType::Long);
  auto outputs = module.forward({EValue(ids), EValue(places)});
  if (!outputs.ok()) stop("the call at position " + std::to_string(position) + " failed", outputs.error());
  const auto& logits = outputs->at(0).toTensor();  // [1, tokens or 1, vocabulary]
  if (logits.dim() != 3 || logits.scalar_type() != executorch::aten::ScalarType::Float) stop("no logits of f32");
  auto width = static_cast<int64_t>(logits.size(2));
  const float* row = logits.const_data_ptr<float>() + (logits.size(1) - 1) * width;
  return std::max_element(row, row + width) - row;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) stop("generate MODEL.pte COUNT TOKEN…");
  Module module(arguments[1], Module::LoadMode::Mmap);
  if (Error error = module.load(Program::Verification::InternalConsistency); error != Error::Ok) {
    stop("cannot load the program", error);
  }
  if (Error error = module.load_method("forward"); error != Error::Ok) stop("cannot load its method", error);
  auto meta = module.method_meta("forward");
  if (!meta.ok() || meta->num_inputs() != 2) stop("its method does not take tokens and positions");
  auto at_once = static_cast<size_t>(meta->input_tensor_meta(0)->sizes()[1]);  // the most tokens a call takes
  std::vector<int64_t> limit = constants(module, "get_max_context_len");
  if (limit.empty()) limit = constants(module, "get_max_seq_len");
  std::vector<int64_t> ends = constants(module, "get_eos_ids");

  std::vector<int64_t> prompt;
  for (int i = 3; i < count; ++i) prompt.push_back(std::atoll(arguments[i]));
  int64_t position = 0, token = 0, wanted = std::atoll(arguments[2]), found = 0;
  for (size_t begin = 0; begin < prompt.size(); begin += at_once) {
    std::vector<int64_t> part(prompt.begin() + static_cast<ptrdiff_t>(begin),
                              prompt.begin() + static_cast<ptrdiff_t>(std::min(begin + at_once, prompt.size())));
    token = next_token(module, part, position);
    position += static_cast<int64_t>(part.size());
  }
  auto start = std::chrono::steady_clock::now();
  while (true) {
    std::printf("%s%lld", found > 0 ? " " : "", static_cast<long long>(token));
    std::fflush(stdout);
    bool is_full = !limit.empty() && position >= limit[0];
    if (++found >= wanted || is_full || std::count(ends.begin(), ends.end(), token) > 0) break;
    std::vector<int64_t> last{token};
    token = next_token(module, last, position++);
  }
  std::printf("\n");
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (found > 1) std::fprintf(stderr, "%.1f tokens a second\n", static_cast<double>(found - 1) / seconds.count());
  return 0;
}
