#pragma once

#include <cstddef>
#include <cstdint>

/// What the shared library of a package exports, for client.cpp and the program: C functions, because a wheel's C++
/// library is another one than that of most users' compilers. Users have the classes of argosy/exporter.h, whose other
/// side is compiled by them. Both sides come in one package, so nothing here is kept from one version to the next.
#define ARGOSY_EXPORTED extern "C" __attribute__((visibility("default")))

/// What a piece of an answer is.
enum class ArgosyPiece : int { kModelClass, kComponent, kFile, kWarning, kText };

/// Functions of src/api/functions.h. What they are given and return is texts (src/api/texts.h).
enum class ArgosyFunction : int { kFindCached, kInspect, kLint, kDescribeBundle };

/// Where answers and errors go; text lives as long as the call. Nothing may be thrown through it.
struct ArgosyReceiver {
  void* self;
  void (*piece)(void* self, ArgosyPiece piece, const char* text, size_t size);
  void (*error)(void* self, uint16_t code, const char* message, const char* hint);
  /// After the error, innermost first; the file is null where no place in a model is known.
  void (*frame)(void* self, const char* what, const char* file, int line, const char* module_path,
                const char* class_name, int call_index);
  void (*progress)(void* self, uint64_t done, uint64_t total);  // may be null
};

/// What a rule asks of the graph: a function of argosy::OpGraph, and what it is given.
enum class ArgosyQuestionKind : int { kHas, kTensor, kTensors, kNumber, kNumbers, kText, kRank, kCall, kReplace };
struct ArgosyQuestion {
  ArgosyQuestionKind kind;
  const char* text;  // the name of an argument or of a function
  const uint32_t* tensors;
  size_t tensor_count;
  const double* numbers;
  size_t number_count;
};
/// Where the answer goes: ids of tensors are numbers, too.
struct ArgosyOpAnswer {
  void* self;
  void (*number)(void* self, double number);
  void (*text)(void* self, const char* text, size_t size);
};
/// False: the library has an error, and the rule is to end.
using ArgosyAsk = bool(void* graph, const ArgosyQuestion* question, const ArgosyOpAnswer* answer);

/// argosy::OpRule. `write` returns false if the rule did not come to its end; null: there is none.
struct ArgosyRule {
  const char* op;
  void* self;
  bool (*write)(void* self, void* graph, ArgosyAsk* ask);
};

/// api::ExportCall.
struct ArgosyExportCall {
  const char* backend;
  const char* output;
  const char* weight_plan;
  const char* dtype;
  const char* seen_values;
  const char* const* arguments;
  size_t argument_count;
  const char* const* variants;  // of each its name, capture and weight plan
  size_t variant_count;
  const ArgosyRule* rules;
  size_t rule_count;
  int threads;
  size_t scratch_bytes;
};

/// All of the program.
ARGOSY_EXPORTED int argosy_main(int count, char** values);
ARGOSY_EXPORTED const char* argosy_version();
/// These return false, or null, after an error.
ARGOSY_EXPORTED bool argosy_describe_capture(const char* path, const ArgosyReceiver* receiver);
ARGOSY_EXPORTED void* argosy_open_checkpoint(const char* path, size_t* tensor_count, uint64_t* total_bytes,
                                             const ArgosyReceiver* receiver);
ARGOSY_EXPORTED void argosy_close_checkpoint(void* checkpoint);
ARGOSY_EXPORTED bool argosy_export(const char* capture, const void* checkpoint, const ArgosyExportCall* call,
                                   uint64_t* bytes, const ArgosyReceiver* receiver);
/// Sends what the function returns as pieces kText.
ARGOSY_EXPORTED bool argosy_call(ArgosyFunction function, const char* const* texts, size_t count,
                                 const ArgosyReceiver* receiver);
