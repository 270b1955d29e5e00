#include "backends/executorch/generation/task.h"

namespace argosy::executorch {}
