#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "debug/watch.h"
#include "driver/backend_options.h"

namespace argosy::cli {

enum class LogLevel : uint8_t { kError, kWarn, kInfo, kDebug };
enum class ProgressMode : uint8_t { kAuto, kBar, kJson, kOff };

/// What every subcommand knows.
struct GlobalOptions {
  LogLevel log_level = LogLevel::kWarn;
  ProgressMode progress = ProgressMode::kAuto;
  bool colours = true;  // where stderr is a terminal
  bool json = false;    // the result as one JSON object on stdout, in the place of text
  std::string command;  // as it is called: "export onnx"
};

/// Where others share what caches hold, and whose signatures there are trusted.
struct RegistryOptions {
  std::string location;           // a folder, or http://…; empty: none is asked
  std::vector<std::string> keys;  // public keys, besides those of a file
};

/// What the environment says. Read here and nowhere below.
struct Environment {
  std::filesystem::path cache;         // ARGOSY_CACHE, else the platform's; may not exist
  std::filesystem::path schemas;       // ARGOSY_SCHEMAS, else op_schemas.txt in the cache; may not exist
  std::filesystem::path python;        // ARGOSY_PYTHON; empty: none is named
  std::string python_paths;            // what else decides which packages Python has, as one text
  std::filesystem::path hub_cache;     // HF_HUB_CACHE, else hub in HF_HOME, else the platform's; may not exist
  RegistryOptions registry;            // ARGOSY_REGISTRY
  std::filesystem::path trusted_keys;  // ARGOSY_REGISTRY_KEYS, else registry-keys.txt in the settings' folder
  bool offline = false;                // HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE: nothing is to be downloaded
};
Environment read_environment();
/// Whether a terminal's colours are wanted: NO_COLOR is not set, and TERM is not "dumb".
bool wants_colours();

struct InspectOptions {
  std::string path;
  bool json = false;
  size_t top = 20;  // rows of long lists in the human layout
  std::string schemas;
  std::string html;  // where a page goes, or empty
};

struct ExplainOptions {
  std::string path;
};

struct OptOptions {
  std::string input;   // a path, or "-"
  std::string output;  // a path, "-", or empty
  std::string passes;
  std::vector<std::string> print_before, print_after;  // names of passes, "changed" (after only) or "all"
  std::string dump_dir;
  std::string repro_dir;
  std::string schemas;
  std::string checkpoint;       // gives the program its weights; empty: none
  std::string plan;             // how they come from the checkpoint; empty: by their names
  bool for_executorch = false;  // the passes of that backend instead of `passes`
  BackendOptions backend_options;
  std::vector<std::string> golden;
  bool update_golden = false;
  bool verify_each = false;
  bool time_passes = false;
  bool check_text = false;
  bool list_passes = false;
};

struct ReplayOptions {
  std::string folder;
};

/// How a command line names a model; model_source.h makes a folder of it.
struct ModelOptions {
  std::string model;     // a folder, or ORG/NAME of the Hub
  std::string revision;  // of ORG/NAME: a branch, a tag or a commit; empty: main
  bool offline = false;  // download nothing
  bool trust_remote_code = false;
};

/// Which graphs of a model are wanted.
struct GraphOptions {
  ModelOptions source;
  std::string task;
  std::string shape;
  std::string dtype = "auto";
  std::vector<std::string> inputs;  // files of what forward is called with; none: Python makes inputs
  std::string trace = "stamped";    // few layers are traced, the others are copies; or "whole"
  bool prefill = false;
  bool recapture = false;
  RegistryOptions registry;
};

struct CaptureOptions : GraphOptions {
  std::string output;
};

enum class CacheAction : uint8_t { kList, kPrune, kImport, kExport, kKeygen, kPush, kPull, kServe };

struct CacheOptions {
  CacheAction action = CacheAction::kList;
  bool is_long = false;
  bool all = false, dry_run = false;
  int older_than_days = -1;  // negative: of any age
  std::string path;          // what to import, or where to export to; a registry's folder; a new key
  std::vector<std::string> keys;
  std::string signing_key;  // a file, to push with
  RegistryOptions registry;
  std::string host = "127.0.0.1";
  uint16_t port = 8470;
};

struct WeightsOptions {
  ModelOptions source;  // with a plan also an index or a .safetensors file
  std::string plan;     // empty: from the cache, or made by Python
  std::string task;
  std::string dtype = "auto";
  std::string adapter;  // a folder; empty: none
  std::string output;
  bool replan = false;
  RegistryOptions registry;
};

enum class CheckMode : uint8_t { kTwin, kFull, kOff };

/// What an export and its model are both given.
struct CheckedOn {
  std::string text;   // a file of text; empty: some words that the tokenizer knows
  std::string audio;  // a file of sound; empty: some tones
};

/// How good an export must be, beside its model in float32.
struct QualityLimits {
  double agreement = 0;                                         // the share of best tokens that must be the model's
  double cosine = 0;                                            // of outputs with the model's, the least; 0: any
  double divergence = std::numeric_limits<double>::infinity();  // nats that the rest may be off by, at most

  bool are_any() const { return agreement > 0 || cosine > 0 || std::isfinite(divergence); }
};

struct ExportOptions : GraphOptions {
  std::string backend;  // a name of driver/backends.h
  BackendOptions backend_options;
  std::vector<std::string> variants;  // names of driver/variants.h; empty: one export, as the other options say
  std::string seen_values;            // a file of driver/onnx/seen_values.h or executorch/seen_ranges.h; empty: none
  std::string calibrate;              // what to see values on; empty: none are seen
  bool adds = false;                  // to those that the output has already
  std::string capture, plan;          // files; empty: from the cache, or made by Python
  std::string adapter;                // a folder; empty: none
  std::map<std::string, std::string> adapters_apart;  // folders by names
  std::string output;                                 // empty: by the model's name
  uint64_t memory_bytes = 0;                          // the most that the process may take; 0: what it needs
  int threads = 0;                                    // 0: as many as there are cores, up to a few
  CheckMode check = CheckMode::kTwin;
  CheckedOn given;      // of CheckMode::kFull
  QualityLimits least;  // of CheckMode::kFull
  bool dry_run = false;
  WatchOptions watch;
};

struct CheckOptions {
  std::string bundle;
  ModelOptions source;  // what it was exported from
  std::string calls;    // which ones; empty: all
  CheckedOn given;
  std::vector<std::string> inputs;                    // files, of what it was captured with
  std::string variant;                                // of several in a bundle; empty: what its engine opens by itself
  std::map<std::string, std::string> adapters_apart;  // folders by names, of adapters that the bundle has
  int tokens = 0;                                     // greedy ones in the bundle's engine, instead of calls; 0: calls
};

struct RunOptions {
  std::string bundle;
  std::string variant;                      // of several in it; empty: what its engine opens by itself
  std::string adapter;                      // of those that are in it; empty: none
  std::string prompt;                       // "-": standard input
  std::string system;                       // what a chat begins with; empty: nothing
  std::vector<std::string> images, audios;  // files
  int max_new_tokens = 128;
  double temperature = 0;  // 0: the best token is always taken
  int top_k = 0;           // 0: among all
  double top_p = -1;       // negative: likewise
  int64_t seed = -1;       // negative: any
  bool raw = false;        // without the chat template
};

struct PushOptions {
  std::string folder;
  std::string repository;  // ORG/NAME of the Hub
  std::string revision;    // a branch; empty: main
  bool is_private = false;
  bool all_files = false;  // also what no export wrote
  bool dry_run = false;
};

struct SweepOptions {
  std::string jobs_file;
  std::string output;   // a folder; empty: by the file's name
  int jobs = 0;         // at a time; 0: as cores and memory allow
  double seconds = -1;  // for one job; negative: the default
  int64_t memory = -1;  // likewise, bytes
  uint64_t disk = 0;    // 0: any
  int retries = 1;      // of jobs that the machine ended
  bool retries_failed = false;
  bool discard = false;               // no exports are kept
  std::string shard;                  // "2/8"; empty: all
  bool uses_ray = false;              // jobs are handed to a cluster
  std::string ray;                    // its address; empty: RAY_ADDRESS, or one on this machine
  std::vector<std::string> reported;  // folders that are reported on, and nothing is run
  std::string compared;               // the folder of an earlier sweep
};

struct LintOptions {
  std::string folder;
  std::string engine;  // empty: the one that the folder is for
  bool list_rules = false;
};

struct DoctorOptions {};

using CommandOptions = std::variant<InspectOptions, ExplainOptions, OptOptions, ReplayOptions, CaptureOptions,
                                    CacheOptions, WeightsOptions, ExportOptions, CheckOptions, RunOptions, PushOptions,
                                    SweepOptions, LintOptions, DoctorOptions>;

/// Exit codes of the program.
enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 2, kWrong = 3 };  // kWrong: checked, and not as it should be

}  // namespace argosy::cli
