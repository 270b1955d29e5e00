#include "argosy/version.h"

namespace argosy {

std::string_view version() { return ARGOSY_VERSION; }

}  // namespace argosy
