#pragma once

#include <deque>
#include <exception>
#include <vector>

#include "argosy/extension.h"
#include "c_interface.h"

namespace argosy {

/// Rules of the program as the library takes them, for one call.
class LibraryRules {
 public:
  /// `thrown` gets what a rule throws. Both must outlive this.
  LibraryRules(const std::vector<OpRule>& rules, std::exception_ptr& thrown);
  const std::vector<ArgosyRule>& list() const { return list_; }

 private:
  struct Written {
    const OpRule* rule;
    std::exception_ptr* thrown;
  };
  static bool write(void* self, void* graph, ArgosyAsk* ask);

  std::deque<Written> written_;  // rows point at these
  std::vector<ArgosyRule> list_;
};

}  // namespace argosy
