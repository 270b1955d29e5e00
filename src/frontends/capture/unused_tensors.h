#pragma once

#include <string>
#include <vector>

#include "frontends/capture/weight_plan.h"
#include "io/checkpoint.h"
#include "ir/program.h"

namespace argosy {

/// Names of the checkpoint's tensors that no weight of the program is made of, sorted. With a plan those that
/// transformers passes over without a word are left out; without one (null) tables of rotary embeddings and ids of
/// positions are, which old checkpoints hold and models compute.
std::vector<std::string> unused_tensors(const Program& program, const WeightPlan* plan, const Checkpoint& checkpoint);

}  // namespace argosy
