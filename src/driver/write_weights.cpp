#include "driver/write_weights.h"

#include "base/text.h"
#include "io/output.h"
#include "io/safetensors_writer.h"

namespace argosy {
namespace {

constexpr size_t kMaxNamed = 10;

Status check_complete(const WeightPlan& plan) {
  if (plan.missing().empty()) return {};
  return fail(ErrorCode::kNotFound,
              format("the checkpoint has no tensor for {}", first_names(plan.missing(), kMaxNamed)),
              format("give the checkpoint of a {}", plan.model_class()));
}

}  // namespace

Status write_weights(const std::filesystem::path& path, const WeightPlan& plan, const Checkpoint& checkpoint,
                     const WriteWeightsOptions& options) {
  ARGOSY_TRY_STATUS(check_complete(plan));
  ARGOSY_TRY(std::vector<TensorSourcePtr> sources, plan.sources(checkpoint));
  std::vector<NamedSource> tensors;
  tensors.reserve(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) tensors.push_back({plan.weights()[i].name, std::move(sources[i])});
  ARGOSY_TRY(SafetensorsLayout layout, lay_out_safetensors(std::move(tensors), {{"format", "pt"}}));
  ARGOSY_TRY(OutputFile file, OutputFile::create(path, Overwrite::kReplace));
  ARGOSY_TRY_STATUS(file.write(layout.header));
  Progress state{format("write {}", path.filename().string()), 0, layout.total_bytes, false};
  for (const NamedSource& tensor : layout.tensors) {
    Status status = file.append(*tensor.source, options.scratch_bytes);
    if (!status) return fail(std::move(status.error().in(format("weight {}", quoted(tensor.name)))));
    state.bytes_done = file.size();
    if (options.progress) options.progress(state);
  }
  ARGOSY_TRY_STATUS(file.commit());
  state.is_finished = true;
  if (options.progress) options.progress(state);
  return {};
}

}  // namespace argosy
