#include "c_interface.h"

#include "../cli/program.h"
#include "api/bridge.h"
#include "api/texts.h"
#include "argosy/version.h"
#include "rules.h"

namespace {

using argosy::api::OpenCapture;
using Checkpoint = std::shared_ptr<const argosy::api::OpenCheckpoint>;

void send(const ArgosyReceiver& receiver, ArgosyPiece piece, const std::string& text) {
  receiver.piece(receiver.self, piece, text.data(), text.size());
}

void send(const ArgosyReceiver& receiver, const argosy::Error& error) {
  receiver.error(receiver.self, static_cast<uint16_t>(error.code), error.message.c_str(), error.hint.c_str());
  for (const argosy::ErrorFrame& frame : error.frames) {
    const argosy::ModelLocation where = frame.where.value_or(argosy::ModelLocation{});
    receiver.frame(receiver.self, frame.what.c_str(), frame.where ? where.file.c_str() : nullptr, where.line,
                   where.module_path.c_str(), where.class_name.c_str(), where.call_index);
  }
}

template <class Value>
bool answer(argosy::Result<Value> result, const ArgosyReceiver& receiver) {
  if (!result) return send(receiver, result.error()), false;
  for (const std::string& text : argosy::api::texts_of(*std::move(result))) send(receiver, ArgosyPiece::kText, text);
  return true;
}

}  // namespace

int argosy_main(int count, char** values) { return argosy::cli::run_program(count, values); }

const char* argosy_version() {
  static const std::string text(argosy::version());
  return text.c_str();
}

bool argosy_describe_capture(const char* path, const ArgosyReceiver* receiver) {
  auto capture = argosy::api::open_capture(path);
  if (!capture) return send(*receiver, capture.error()), false;
  send(*receiver, ArgosyPiece::kModelClass, (*capture)->model_class);
  for (const std::string& component : (*capture)->components) send(*receiver, ArgosyPiece::kComponent, component);
  return true;
}

void* argosy_open_checkpoint(const char* path, size_t* tensor_count, uint64_t* total_bytes,
                             const ArgosyReceiver* receiver) {
  auto checkpoint = argosy::api::open_checkpoint(path);
  if (!checkpoint) return send(*receiver, checkpoint.error()), nullptr;
  *tensor_count = argosy::api::tensor_count(**checkpoint);
  *total_bytes = argosy::api::total_bytes(**checkpoint);
  return new Checkpoint(*std::move(checkpoint));
}

void argosy_close_checkpoint(void* checkpoint) { delete static_cast<Checkpoint*>(checkpoint); }

bool argosy_export(const char* capture, const void* checkpoint, const ArgosyExportCall* call, uint64_t* bytes,
                   const ArgosyReceiver* receiver) {
  argosy::api::ExportCall wanted;
  wanted.backend = call->backend;
  wanted.output = call->output;
  wanted.weight_plan = call->weight_plan;
  wanted.dtype = call->dtype;
  wanted.seen_values = call->seen_values;
  wanted.arguments.assign(call->arguments, call->arguments + call->argument_count);
  for (size_t i = 0; i < call->variant_count; ++i)
    wanted.variants.push_back({call->variants[3 * i], call->variants[3 * i + 1], call->variants[3 * i + 2]});
  for (size_t i = 0; i < call->rule_count; ++i) wanted.rules.push_back(argosy::rule_of_program(call->rules[i]));
  wanted.threads = call->threads;
  wanted.scratch_bytes = call->scratch_bytes;
  if (receiver->progress != nullptr) {
    wanted.progress = [receiver](uint64_t done, uint64_t total) { receiver->progress(receiver->self, done, total); };
  }
  try {
    auto bundle =
        argosy::api::export_model(OpenCapture{capture, {}, {}}, **static_cast<const Checkpoint*>(checkpoint), wanted);
    if (!bundle) return send(*receiver, bundle.error()), false;
    *bytes = bundle->bytes;
    for (const std::string& file : bundle->files) send(*receiver, ArgosyPiece::kFile, file);
    for (const std::string& warning : bundle->warnings) send(*receiver, ArgosyPiece::kWarning, warning);
    return true;
  } catch (const argosy::RuleThrew&) {
    return false;
  }
}

bool argosy_call(ArgosyFunction function, const char* const* texts, size_t count, const ArgosyReceiver* receiver) {
  namespace api = argosy::api;
  const std::vector<std::string> given(texts, texts + count);
  switch (function) {
    case ArgosyFunction::kFindCached:
      return answer(api::find_cached(api::from_texts<argosy::CacheRequest>(given)), *receiver);
    case ArgosyFunction::kInspect: return answer(api::inspect(given.at(0), given.at(1)), *receiver);
    case ArgosyFunction::kLint: return answer(api::lint(given.at(0), given.at(1)), *receiver);
    case ArgosyFunction::kDescribeBundle: return answer(api::describe_bundle(given.at(0)), *receiver);
  }
  return false;
}
