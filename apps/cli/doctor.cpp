#include <fstream>
#include <sstream>

#include "argosy/version.h"
#include "base/system.h"
#include "base/text.h"
#include "commands.h"
#include "io/json.h"
#include "python.h"
#include "subprocess.h"
#include "table.h"

namespace argosy::cli {
namespace {

constexpr auto kVersionsTimeout = std::chrono::seconds(20);  // a cold Python on a slow disk

// Versions come from the packages' metadata, so that nothing heavy is imported.
constexpr const char* kPackages = R"(
import importlib.metadata, platform
print("python", platform.python_version())
for name in ("argosy", "torch", "transformers", "safetensors", "onnx", "onnxruntime", "onnxruntime-genai", "executorch"):
    try:
        print(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        print(name, "-")
)";

struct Installed {
  std::string name;
  std::string version;  // empty: not installed
};

/// What this version can do here, and why not where it cannot.
struct Ability {
  std::string what;
  bool is_there = false;
  std::string reason;
};

struct DoctorReport {
  std::string compiler, build_type;
  std::optional<std::string> python_path, node_path;
  std::vector<Installed> packages;  // of that Python, which is the first; empty if none could be asked
  std::string node_version;
  std::filesystem::path cache, schemas;
  bool has_cache = false;
  std::optional<uint64_t> schema_count;  // nullopt: there is no file
  uint64_t disk_free = 0;
  system::Memory memory;
  std::vector<Ability> abilities;
};

void ask_python(DoctorReport& report, const Environment& environment) {
  for (const std::string& path : candidate_pythons(environment)) {
    auto output = output_of({path, "-c", kPackages}, kVersionsTimeout);
    if (!output) continue;
    report.python_path = path;
    std::istringstream lines(*output);
    std::string package, version;
    while (lines >> package >> version) report.packages.push_back({package, version == "-" ? "" : version});
    return;
  }
}

void ask_node(DoctorReport& report) {
  report.node_path = find_program("node");
  if (!report.node_path) return;
  report.node_version = output_of({*report.node_path, "--version"}, kVersionsTimeout).value_or("");
  while (!report.node_version.empty() && report.node_version.back() <= ' ') report.node_version.pop_back();
}

void measure_machine(DoctorReport& report) {
  std::error_code error;
  report.has_cache = std::filesystem::is_directory(report.cache, error);
  std::filesystem::path existing = report.cache;
  while (!existing.empty() && !std::filesystem::exists(existing, error) && existing != existing.parent_path()) {
    existing = existing.parent_path();
  }
  auto space = std::filesystem::space(existing.empty() ? "." : existing, error);
  if (!error) report.disk_free = space.available;
  report.memory = system::memory();
}

void count_schemas(DoctorReport& report) {
  std::ifstream file(report.schemas);
  if (!file) return;
  uint64_t count = 0;
  std::string line;
  while (std::getline(file, line)) count += !line.empty() && line[0] != '#';
  report.schema_count = count;
}

std::string version_of(const DoctorReport& report, std::string_view package) {
  for (const Installed& installed : report.packages) {
    if (installed.name == package) return installed.version;
  }
  return "";
}

void judge(DoctorReport& report) {
  report.abilities.push_back({"inspect safetensors, .onnx, .capture and IR text", true, ""});
  report.abilities.push_back({"run passes on .capture and IR text, replay reproducers", true, ""});
  Ability pt2{"read and write .pt2 archives of torch.export", report.schema_count.value_or(0) > 0, ""};
  if (!pt2.is_there) {
    pt2.reason = format("there are no op schemas in {}; ", report.schemas.string());
    if (report.packages.empty()) {
      pt2.reason += "install Python and torch, then run: python -m argosy.schemas";
    } else if (version_of(report, "torch").empty()) {
      pt2.reason += format("install torch into {}, then run: python -m argosy.schemas", *report.python_path);
    } else {
      pt2.reason += "run: python -m argosy.schemas";
    }
  }
  report.abilities.push_back(std::move(pt2));
  bool has_package = !version_of(report, "argosy").empty();
  report.abilities.push_back({"open checkpoints from Python (import argosy)", has_package,
                              has_package ? "" : "that Python does not have the package; run pip install with it"});
  std::vector<std::string> lacking;
  for (std::string name : {"argosy", "torch", "transformers"}) {
    if (version_of(report, name).empty()) lacking.push_back(std::move(name));
  }
  report.abilities.push_back(
      {"capture models that are not in the cache", lacking.empty(),
       lacking.empty() ? "" : format("Python lacks {}; install them for it", join(lacking, ", "))});
  report.abilities.push_back({"export captures to ONNX, ExecuTorch and .pt2", true, ""});
  bool has_runtime = !version_of(report, "onnxruntime").empty();
  report.abilities.push_back({"check exports to ONNX", lacking.empty() && has_runtime,
                              has_runtime ? lacking.empty() ? "" : "captures cannot be made, see above"
                                          : "Python lacks onnxruntime; install it for it"});
  bool has_genai = has_package && !version_of(report, "onnxruntime-genai").empty();
  report.abilities.push_back({"run bundles in ONNX Runtime GenAI", has_genai,
                              has_genai ? "" : "Python lacks argosy or onnxruntime-genai; install them for it"});
  bool has_executorch = !version_of(report, "executorch").empty();
  report.abilities.push_back({"check exports to ExecuTorch", lacking.empty() && has_executorch,
                              has_executorch ? lacking.empty() ? "" : "captures cannot be made, see above"
                                             : "Python lacks executorch; install it for it"});
}

std::string as_text(const DoctorReport& report) {
  auto or_none = [](const std::string& text) { return text.empty() ? std::string("not installed") : text; };
  Table installed("ll");
  installed.add({"argosy", format("{} ({}, {})", version(), report.compiler, report.build_type)});
  if (!report.python_path) installed.add({"python", "none that works, neither beside this program nor on PATH"});
  for (const Installed& package : report.packages) {
    bool is_python = package.name == "python";
    std::string label = is_python ? "python" : package.name == "argosy" ? "  argosy (package)" : "  " + package.name;
    installed.add(
        {label, is_python ? format("{} ({})", package.version, *report.python_path) : or_none(package.version)});
  }
  installed.add(
      {"node", report.node_path ? format("{} ({})", report.node_version, *report.node_path) : "not installed"});
  Table places("ll");
  places.add({"cache", format("{}{}", report.cache.string(), report.has_cache ? "" : " (not made yet)")});
  places.add({"op schemas", report.schema_count
                                ? format("{} ({})", report.schemas.string(), count_of(*report.schema_count, "schema"))
                                : format("{} (not there)", report.schemas.string())});
  places.add({"disk", format("{} free", format_bytes(report.disk_free))});
  places.add(
      {"memory", format("{}, {} available", format_bytes(report.memory.total), format_bytes(report.memory.available))});
  Table abilities("ll");
  for (const Ability& ability : report.abilities) {
    abilities.add({ability.is_there ? "yes" : "no",
                   ability.reason.empty() ? ability.what : format("{}: {}", ability.what, ability.reason)});
  }
  return format("installed\n{}\nmachine\n{}\nwhat that allows\n{}", installed.text(), places.text(), abilities.text());
}

void add_members(const DoctorReport& report, JsonWriter& writer) {
  auto text_or_null = [&](std::string_view key, const std::string& text) {
    writer.key(key);
    text.empty() ? writer.null() : writer.value(text);
  };
  writer.key("argosy").value(version()).key("compiler").value(report.compiler);
  writer.key("build_type").value(report.build_type);
  text_or_null("python", report.python_path.value_or(""));
  writer.key("packages").begin_object();
  for (const Installed& package : report.packages) text_or_null(package.name, package.version);
  writer.end_object();
  text_or_null("node", report.node_path.value_or(""));
  text_or_null("node_version", report.node_version);
  writer.key("cache").value(report.cache.string()).key("schemas").value(report.schemas.string()).key("schema_count");
  report.schema_count ? writer.value(*report.schema_count) : writer.null();
  writer.key("disk_free_bytes").value(report.disk_free).key("memory_bytes").value(report.memory.total);
  writer.key("memory_available_bytes").value(report.memory.available).key("abilities").begin_array();
  for (const Ability& ability : report.abilities) {
    writer.begin_object().key("what").value(ability.what).key("available").value(ability.is_there);
    text_or_null("reason", ability.reason);
    writer.end_object();
  }
  writer.end_array();
}

}  // namespace

int run_doctor(const DoctorOptions& /*options*/, const Environment& environment, Terminal& terminal) {
  DoctorReport report;
  report.compiler = ARGOSY_COMPILER;
  report.build_type = ARGOSY_BUILD_TYPE;
  report.cache = environment.cache;
  report.schemas = environment.schemas;
  ask_python(report, environment);
  ask_node(report);
  measure_machine(report);
  count_schemas(report);
  judge(report);
  if (!terminal.wants_json()) return terminal.print(as_text(report)) ? kDone : kFailed;
  add_members(report, terminal.summary().members());
  return kDone;
}

}  // namespace argosy::cli
