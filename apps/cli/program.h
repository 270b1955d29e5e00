#pragma once

#include "driver/export_hooks.h"

namespace argosy::cli {

/// All of a command-line program: what main() is given, and what it returns. `hooks` are for tests alone.
int run_program(int count, char** values, const ExportHooks* hooks = nullptr);

}  // namespace argosy::cli
