// The program argosy with one fault inside, which ARGOSY_FAULT names: for tests of the check. Without one it is the
// ordinary program. `argosy_sabotage --faults` lists them. Never installed.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "faults/fault.h"
#include "program.h"

namespace argosy::sabotage {
namespace {

int list_faults() {
  for (const Fault* fault : all_faults())
    std::printf("%s\t%s\n", std::string(fault->name).c_str(), std::string(fault->what).c_str());
  return 0;
}

const Fault* find_fault(std::string_view name) {
  for (const Fault* fault : all_faults()) {
    if (fault->name == name) return fault;
  }
  return nullptr;
}

/// Remembers whether the fault was reached, and fails where it found no place.
struct Saboteur {
  const Fault& fault;
  bool is_done = false;

  Status note(Result<bool> found) {
    if (!found) return fail(std::move(found.error()));
    is_done = true;
    if (*found || fault.is_of_engine) return {};
    return fail(ErrorCode::kInvalidInput, format("the fault {} finds no place in this model", fault.name));
  }

  ExportHooks hooks() {
    ExportHooks hooks;
    if (fault.program != nullptr) {
      hooks.on_program = [this](std::string_view stage, Program& program) -> Status {
        return stage == fault.stage && !is_done ? note(fault.program(program)) : Status();
      };
    }
    if (fault.onnx != nullptr) hooks.on_onnx_graphs = [this](auto& graphs) { return note(fault.onnx(graphs)); };
    if (fault.executorch != nullptr)
      hooks.on_executorch = [this](executorch::Document& document) { return note(fault.executorch(document)); };
    return hooks;
  }
};

int run(int count, char** values) {
  if (count == 2 && std::string_view(values[1]) == "--faults") return list_faults();
  const char* name = std::getenv("ARGOSY_FAULT");
  bool is_export = count > 1 && std::string_view(values[1]) == "export";
  if (name == nullptr || *name == 0 || !is_export) return cli::run_program(count, values);
  const Fault* fault = find_fault(name);
  if (fault == nullptr) {
    std::fprintf(stderr, "there is no fault %s; argosy_sabotage --faults lists them\n", name);
    return 2;
  }
  Saboteur saboteur{*fault};
  const ExportHooks hooks = saboteur.hooks();
  int result = cli::run_program(count, values, &hooks);
  if (result != 0 || saboteur.is_done) return result;
  std::fprintf(stderr, "the fault %s was never reached: it is none of this export\n", name);
  return 1;
}

}  // namespace
}  // namespace argosy::sabotage

int main(int count, char** values) { return argosy::sabotage::run(count, values); }
