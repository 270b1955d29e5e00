// The library as users' programs see it, over the C functions of a wheel's shared library. find_package compiles this
// file with their compiler, beside the classes and functions of the headers (src/api) and error.cpp.
#include <exception>

#include "api/bridge.h"
#include "api/texts.h"
#include "argosy/version.h"
#include "c_interface.h"
#include "client_rules.h"

namespace argosy {

std::string_view version() { return argosy_version(); }

namespace api {

struct OpenCheckpoint {
  void* handle = nullptr;
  size_t tensor_count = 0;
  uint64_t total_bytes = 0;

  OpenCheckpoint() = default;
  OpenCheckpoint(const OpenCheckpoint&) = delete;
  OpenCheckpoint& operator=(const OpenCheckpoint&) = delete;
  ~OpenCheckpoint() { argosy_close_checkpoint(handle); }
};

namespace {

/// What a call answers.
struct Answer {
  Error error;
  std::vector<std::string> pieces[5];  // by ArgosyPiece
  std::function<void(uint64_t, uint64_t)> progress;
  std::exception_ptr thrown;  // by `progress` or a rule; nothing else here throws but for want of memory

  std::vector<std::string>& operator[](ArgosyPiece piece) { return pieces[static_cast<int>(piece)]; }

  ArgosyReceiver receiver() {
    ArgosyReceiver result{};
    result.self = this;
    result.piece = [](void* self, ArgosyPiece piece, const char* text, size_t size) {
      (*static_cast<Answer*>(self))[piece].emplace_back(text, size);
    };
    result.error = [](void* self, uint16_t code, const char* message, const char* hint) {
      static_cast<Answer*>(self)->error = Error(static_cast<ErrorCode>(code), message, hint);
    };
    result.frame = [](void* self, const char* what, const char* file, int line, const char* module_path,
                      const char* class_name, int call_index) {
      std::optional<ModelLocation> where;
      if (file != nullptr) where = ModelLocation{file, line, module_path, class_name, call_index};
      static_cast<Answer*>(self)->error.in(what, std::move(where));
    };
    if (progress) {
      result.progress = [](void* self, uint64_t done, uint64_t total) {
        auto& answer = *static_cast<Answer*>(self);
        try {
          if (!answer.thrown) answer.progress(done, total);
        } catch (...) {
          answer.thrown = std::current_exception();
        }
      };
    }
    return result;
  }
};

template <class Value>
Result<Value> call(ArgosyFunction function, const std::vector<std::string>& texts) {
  Answer answer;
  const ArgosyReceiver receiver = answer.receiver();
  std::vector<const char*> given;
  for (const std::string& each : texts) given.push_back(each.c_str());
  if (!argosy_call(function, given.data(), given.size(), &receiver)) return fail(std::move(answer.error));
  return from_texts<Value>(answer[ArgosyPiece::kText]);
}

}  // namespace

Result<CachedFiles> find_cached(const CacheRequest& request) {
  return call<CachedFiles>(ArgosyFunction::kFindCached, texts_of(request));
}

Result<std::string> inspect(const std::filesystem::path& path, const std::filesystem::path& schemas) {
  return call<std::string>(ArgosyFunction::kInspect, {path.string(), schemas.string()});
}

Result<LintReport> lint(const std::filesystem::path& folder, const std::string& engine) {
  return call<LintReport>(ArgosyFunction::kLint, {folder.string(), engine});
}

Result<BundleDescription> describe_bundle(const std::filesystem::path& folder) {
  return call<BundleDescription>(ArgosyFunction::kDescribeBundle, {folder.string()});
}

Result<std::shared_ptr<const OpenCapture>> open_capture(const std::filesystem::path& path) {
  Answer answer;
  const ArgosyReceiver receiver = answer.receiver();
  if (!argosy_describe_capture(path.c_str(), &receiver)) return fail(std::move(answer.error));
  auto opened = std::make_shared<OpenCapture>();
  opened->path = path;
  opened->model_class = answer[ArgosyPiece::kModelClass].at(0);
  opened->components = std::move(answer[ArgosyPiece::kComponent]);
  return opened;
}

Result<std::shared_ptr<const OpenCheckpoint>> open_checkpoint(const std::filesystem::path& path) {
  Answer answer;
  const ArgosyReceiver receiver = answer.receiver();
  auto opened = std::make_shared<OpenCheckpoint>();
  opened->handle = argosy_open_checkpoint(path.c_str(), &opened->tensor_count, &opened->total_bytes, &receiver);
  if (opened->handle == nullptr) return fail(std::move(answer.error));
  return opened;
}

size_t tensor_count(const OpenCheckpoint& checkpoint) { return checkpoint.tensor_count; }
uint64_t total_bytes(const OpenCheckpoint& checkpoint) { return checkpoint.total_bytes; }

Result<ExportedBundle> export_model(const OpenCapture& capture, const OpenCheckpoint& checkpoint,
                                    const ExportCall& call) {
  Answer answer;
  answer.progress = call.progress;
  const ArgosyReceiver receiver = answer.receiver();
  const LibraryRules rules(call.rules, answer.thrown);
  std::vector<const char*> arguments;
  for (const std::string& each : call.arguments) arguments.push_back(each.c_str());
  std::vector<const char*> variants;
  for (const VariantCall& each : call.variants)
    variants.insert(variants.end(), {each.name.c_str(), each.capture.c_str(), each.weight_plan.c_str()});
  const ArgosyExportCall wanted{.backend = call.backend.c_str(),
                                .output = call.output.c_str(),
                                .weight_plan = call.weight_plan.c_str(),
                                .dtype = call.dtype.c_str(),
                                .seen_values = call.seen_values.c_str(),
                                .arguments = arguments.data(),
                                .argument_count = arguments.size(),
                                .variants = variants.data(),
                                .variant_count = call.variants.size(),
                                .rules = rules.list().data(),
                                .rule_count = rules.list().size(),
                                .threads = call.threads,
                                .scratch_bytes = call.scratch_bytes};
  ExportedBundle bundle;
  bundle.path = call.output;
  const bool done = argosy_export(capture.path.c_str(), checkpoint.handle, &wanted, &bundle.bytes, &receiver);
  if (answer.thrown) std::rethrow_exception(answer.thrown);
  if (!done) return fail(std::move(answer.error));
  bundle.files = std::move(answer[ArgosyPiece::kFile]);
  bundle.warnings = std::move(answer[ArgosyPiece::kWarning]);
  return bundle;
}

}  // namespace api
}  // namespace argosy
