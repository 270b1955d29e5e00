#include "engines/tokenizer_config.h"

#include "engines/rewrite_json.h"

namespace argosy::engines {

void add_tokenizer_config(const SourceModel& model, BundlePlan& plan) {
  if (!model.tokenizer_config) return;
  JsonView root = model.tokenizer_config->root();
  std::vector<JsonChange> changes;
  if (root.find("tokenizer_class").as_string() == "TokenizersBackend")
    changes.push_back({{"tokenizer_class"}, "PreTrainedTokenizerFast"});
  if (JsonView extra = root.find("extra_special_tokens"); extra.is_array()) {
    changes.push_back({{"extra_special_tokens"}, nullptr});
    if (extra.size() != 0 && !root.find("additional_special_tokens").is_valid())
      changes.push_back({{"additional_special_tokens"}, extra});
  }
  if (!changes.empty()) plan.files.push_back({"tokenizer_config.json", rewritten(root, changes)});
}

}  // namespace argosy::engines
