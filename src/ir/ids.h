#pragma once

#include "base/ids.h"

namespace argosy {

using ValueId = Id<struct ValueTag>;        // in one Graph
using NodeId = Id<struct NodeTag>;          // in one Graph
using GraphId = Id<struct GraphTag>;        // in one Component; 0 is its entry
using StorageId = Id<struct StorageTag>;    // in one Component: values with the same id share memory
using OpId = Id<struct OpTag>;              // in one SchemaTable
using WeightId = Id<struct WeightTag>;      // in one Program
using LocationId = Id<struct LocationTag>;  // in one Program

}  // namespace argosy
