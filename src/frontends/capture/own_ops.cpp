#include "frontends/capture/own_ops.h"

#include <map>

#include "base/text.h"
#include "io/onnx/own_op.h"

namespace argosy {

Status read_own_ops(const JsonField& root, Program& program) {
  JsonField list = root.member("onnx_ops");
  if (!list.is_valid()) return {};
  ARGOSY_TRY_STATUS(list.require_array());
  std::map<std::string, int64_t> versions;
  int64_t index = 0;
  for (JsonView item : list.view().items()) {
    JsonField field = list.item(item, index++);
    ARGOSY_TRY_STATUS(field.require_object());
    ARGOSY_TRY(std::string_view op, field.member("op").string());
    OwnOp own;
    ARGOSY_TRY(own.domain, field.member("domain").string());
    ARGOSY_TRY(own.name, field.member("name").string());
    ARGOSY_TRY(own.version, field.member("version").integer());
    if (Status status = check(own); !status) return field.error(status.error().message);
    if (op.starts_with("aten.")) return field.error(format("{} is PyTorch's", quoted(op)));
    auto [known, is_new] = versions.try_emplace(own.domain, own.version);
    if (!is_new && known->second != own.version)
      return field.error(format("domain {} has version {} and {} at once", own.domain, known->second, own.version));
    if (!program.attributes.emplace(format("{}{}", kOwnOpAttribute, op), to_text(own)).second)
      return field.error(format("op {} occurs twice", quoted(op)));
  }
  return {};
}

}  // namespace argosy
