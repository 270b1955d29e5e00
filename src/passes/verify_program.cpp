#include "passes/verify_program.h"

#include "ir/verify.h"

namespace argosy {

Pass verify_program() {
  return {"verify", [](Program& program, PassContext& context) -> Result<bool> {
            Diagnostics found = verify(program);
            if (found.errors.empty()) return false;
            Error first = found.errors.front();
            for (size_t i = 1; i < found.errors.size(); ++i)
              context.diagnostics.errors.push_back(std::move(found.errors[i]));
            return fail(std::move(first));
          }};
}

}  // namespace argosy
