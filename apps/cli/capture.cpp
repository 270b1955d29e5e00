#include "base/text.h"
#include "cache/cache_contents.h"
#include "commands.h"
#include "io/output.h"
#include "model_source.h"
#include "python.h"

namespace argosy::cli {
namespace {

/// "LlamaForCausalLM by torch 2.13.0, transformers 5.22.2"
std::string text_of(const CacheDescription& description) {
  return format("{} by torch {}, transformers {}", description.model_class, description.torch,
                description.transformers.empty() ? "of an unknown version" : description.transformers);
}

Status copy(const CacheEntry& entry, const std::filesystem::path& output) {
  ARGOSY_TRY(OutputFile file, OutputFile::create(output, Overwrite::kReplace));
  ARGOSY_TRY_STATUS(file.copy_from({entry.path.string(), 0, entry.bytes}));
  return file.commit();
}

Status capture(const CaptureOptions& options, const Environment& environment, Terminal& terminal) {
  ARGOSY_TRY(std::filesystem::path model,
             obtain_model(options.source, ModelParts::kConfiguration, environment, terminal));
  ARGOSY_TRY(PythonWork work, capture_work(capture_request(options, model, environment)));
  work.renew = options.recapture;
  ARGOSY_TRY(Obtained obtained, obtain_by_python(work, environment, terminal));
  ARGOSY_TRY(CacheDescription description, describe(obtained.entry));
  ARGOSY_TRY_STATUS(copy(obtained.entry, options.output));
  terminal.print_error(format("argosy: {}: {}{}\n", options.output, text_of(description),
                              obtained.was_cached ? ", from the cache" : ""));
  JsonWriter& writer = terminal.summary().members();
  writer.key("output").value(options.output).key("bytes").value(obtained.entry.bytes);
  writer.key("from_cache").value(obtained.was_cached).key("key").value(obtained.entry.key);
  writer.key("model_class").value(description.model_class).key("task").value(description.task);
  writer.key("torch").value(description.torch).key("transformers").value(description.transformers);
  return {};
}

}  // namespace

int run_capture(const CaptureOptions& options, const Environment& environment, Terminal& terminal) {
  Status status = capture(options, environment, terminal);
  if (status) return kDone;
  terminal.print_error(status.error());
  return kFailed;
}

}  // namespace argosy::cli
