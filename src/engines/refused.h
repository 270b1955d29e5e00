#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text.h"

namespace argosy::engines {

/// A model that an engine cannot run, and why.
inline tl::unexpected<Error> refused(std::string_view engine, const std::string& why) {
  return fail(ErrorCode::kUnsupportedFeature, format("{} cannot run this model: {}", engine, why),
              "--for plain writes the same graphs with names of their own");
}

}  // namespace argosy::engines
