// Token ids compared with the tokenizer, and files that belong to a tokenizer.

#include "engines/lint_tokens.h"

#include <algorithm>
#include <map>
#include <set>

#include "engines/lint_cache.h"
#include "engines/lint_rule.h"

namespace argosy::engines {
namespace {

/// Where ids stand: a file, and the object in it.
struct TokenSource {
  std::string_view file;
  JsonView object;
};

std::vector<TokenSource> token_sources(const LintedBundle& bundle) {
  std::vector<TokenSource> sources;
  auto add = [&](std::string_view file, JsonView object) {
    if (object.is_object()) sources.push_back({file, object});
  };
  add("generation_config.json", bundle.json("generation_config.json"));
  add("config.json", bundle.config());
  JsonView text = bundle.text_config();
  if (bundle.config().find("model_type").is_valid() && text.find("hidden_size").is_valid() &&
      !bundle.config().find("hidden_size").is_valid())
    add("config.json", text);
  add("genai_config.json", bundle.json("genai_config.json").find("model"));
  return sources;
}

constexpr std::string_view kTokenKeys[] = {
    "bos_token_id",          "eos_token_id",      "pad_token_id",      "decoder_start_token_id",
    "forced_bos_token_id",   "image_token_id",    "audio_token_id",    "video_token_id",
    "vision_start_token_id", "image_token_index", "audio_token_index",
};

/// The number of tokens that the model knows: the last dim of its logits, else what the configuration says.
std::optional<int64_t> model_vocabulary(const LintedBundle& bundle) {
  for (const LintedGraph& graph : bundle.graphs()) {
    const OnnxValue* logits = cache_inputs(graph).empty() ? nullptr : graph.output("logits");
    if (logits != nullptr && logits->shape.size() == 3 && logits->shape[2].value) return logits->shape[2].value;
  }
  return bundle.text_number({"vocab_size"});
}

void check_range(const LintedBundle& bundle, const FindingSink& found) {
  // Placeholders of images may have no embedding of their own; what is generated must have one.
  int64_t words = bundle.vocabulary() ? bundle.vocabulary()->size() : 0;
  int64_t known = model_vocabulary(bundle).value_or(words);
  for (const TokenSource& source : token_sources(bundle)) {
    for (std::string_view key : kTokenKeys) {
      bool is_generated = key == "eos_token_id" || key == "bos_token_id" || key == "decoder_start_token_id";
      int64_t size = is_generated ? known : std::max(known, words);
      for (int64_t id : integers(source.object.find(key))) {
        // Some configurations write -1 for none.
        if (size > 0 && (id >= size || id < -1))
          found.add(source.file, format("{} is {}, there are {} tokens", key, id, size));
      }
    }
  }
}

void check_not_in_tokenizer(const LintedBundle& bundle, const FindingSink& found) {
  if (!bundle.vocabulary()) return;
  for (const TokenSource& source : token_sources(bundle)) {
    for (std::string_view key :
         {"bos_token_id", "eos_token_id", "image_token_id", "image_token_index", "audio_token_id"}) {
      for (int64_t id : integers(source.object.find(key))) {
        if (id >= 0 && id < std::max(bundle.vocabulary()->size(), model_vocabulary(bundle).value_or(0)) &&
            !bundle.vocabulary()->has(id))
          found.add(source.file, format("{} is {}, which tokenizer.json has no token for", key, id));
      }
    }
  }
}

/// The text of a token of tokenizer_config.json: a string, or an object with its content.
std::string_view token_text(JsonView value) {
  if (auto text = value.as_string()) return *text;
  return value.find("content").as_string().value_or("");
}

void check_other_token(const LintedBundle& bundle, const FindingSink& found) {
  if (!bundle.vocabulary()) return;
  JsonView tokenizer = bundle.json("tokenizer_config.json");
  std::vector<std::string> texts;
  std::set<std::string> all_files;
  for (auto [key, name] : {std::pair("eos_token_id", "eos_token"), std::pair("bos_token_id", "bos_token")}) {
    std::string_view token = token_text(tokenizer.find(name));
    auto id = token.empty() ? std::nullopt : bundle.vocabulary()->id_of(token);
    if (!id) continue;
    std::map<std::string, std::vector<std::string>> files;  // by the ids that they have instead
    for (const TokenSource& source : token_sources(bundle)) {
      std::vector<int64_t> ids = integers(source.object.find(key));
      if (ids.empty() || std::find(ids.begin(), ids.end(), *id) != ids.end()) continue;
      files[ids_text(ids)].emplace_back(source.file);
      all_files.emplace(source.file);
    }
    for (const auto& [ids, names] : files) {
      texts.push_back(format("{} is {} in {}, but the tokenizer's {} is {} ({})", key, ids, join(names, ", "), name,
                             *id, quoted(token)));
    }
  }
  // It is one thing, in however many files it shows.
  if (!texts.empty()) found.add(all_files.size() == 1 ? *all_files.begin() : "", join(texts, "; "));
}

void check_vocabulary_larger(const LintedBundle& bundle, const FindingSink& found) {
  auto known = model_vocabulary(bundle);
  if (!known || !bundle.vocabulary() || bundle.vocabulary()->size() <= *known) return;
  found.add("tokenizer.json", format("token id {} is outside the model's vocabulary (0..{})",
                                     bundle.vocabulary()->size() - 1, *known - 1));
}

void check_no_eos(const LintedBundle& bundle, const FindingSink& found) {
  if (!has_cache(bundle) || !bundle.config().is_object() || bundle.json("genai_config.json").is_object()) return;
  for (const TokenSource& source : token_sources(bundle)) {
    if (!integers(source.object.find("eos_token_id")).empty()) return;
  }
  if (has_no_end_token(bundle)) return;
  found.add("", "neither generation_config.json nor config.json has an eos_token_id");
}

/// Whether a name says that the model was tuned for conversations.
bool is_chat_name(std::string_view name) {
  std::string lower;
  for (char c : name) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower.find("instruct") != std::string::npos || lower.find("-chat") != std::string::npos ||
         lower.ends_with("-it");
}

void check_chat_template(const LintedBundle& bundle, const FindingSink& found) {
  bool is_chat = is_chat_name(bundle.config().find("_name_or_path").as_string().value_or("")) ||
                 is_chat_name(bundle.json("bundle.json").find("model").as_string().value_or("")) ||
                 is_chat_name(bundle.folder().filename().native());
  if (!is_chat || !has_cache(bundle)) return;
  bool has_template =
      bundle.has("chat_template.jinja") || bundle.has("chat_template.json") ||
      bundle.json("tokenizer_config.json").find("chat_template").is_valid() ||
      std::any_of(bundle.files().begin(), bundle.files().end(), [](const LintedFile& file) {
        return file.name.starts_with("chat_templates/") || file.name.starts_with("additional_chat_templates/");
      });
  if (!has_template) found.add("", "it is a model for conversations by its name, and there is no chat template");
}

void check_processor(const LintedBundle& bundle, const FindingSink& found) {
  if (bundle.file("preprocessor_config.json") != nullptr || bundle.file("processor_config.json") != nullptr) return;
  if (bundle.file("bundle.json") != nullptr) return;  // written with all that the model has
  for (const LintedGraph& graph : bundle.graphs()) {
    for (std::string_view name : {"pixel_values", "input_features", "input_values"}) {
      if (graph.input(name) == nullptr) continue;
      found.add(graph.file, format("it takes {}, and nothing says how they are made", name));
      return;
    }
  }
}

constexpr LintRule kTokensRules[] = {
    {"token-id-range", kLintError, "an id of a special token beyond the vocabulary",
     "take the id from the model's own configuration", check_range},
    {"token-id-unknown", kLintWarning, "an id of a special token that the tokenizer has no token for",
     "copy tokenizer and configuration of the same model", check_not_in_tokenizer},
    {"token-id-differs", kLintWarning,
     "a begin or end token that is not the tokenizer's, as of another model (executorch#22042)",
     "check whose id it is; the end token is what stops generation", check_other_token},
    {"vocabulary-too-large", kLintError, "a tokenizer with tokens that the model has no embedding for",
     "copy the tokenizer that belongs to the model", check_vocabulary_larger},
    {"eos-missing", kLintWarning, "no id of an end token anywhere, so that generation never stops",
     "copy generation_config.json of the model", check_no_eos},
    {"chat-template-missing", kLintWarning, "a model for conversations without its chat template",
     "copy chat_template.jinja of the model", check_chat_template},
    {"processor-missing", kLintWarning, "images or audio as inputs, without the processor's configuration",
     "copy preprocessor_config.json or processor_config.json of the model", check_processor},
};

}  // namespace

bool has_no_end_token(const LintedBundle& bundle) {
  bool says_none = false;
  for (JsonView part : {bundle.config(), bundle.text_config(), bundle.json("generation_config.json")}) {
    JsonView ids = part.find("eos_token_id");
    if (!integers(ids).empty()) return false;
    says_none = says_none || ids.is_null();
  }
  return says_none;
}

std::string ids_text(const std::vector<int64_t>& ids) {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (int64_t id : ids) texts.push_back(std::to_string(id));
  if (texts.size() > 8) {
    texts.resize(8);
    texts.emplace_back("…");
  }
  return join(texts, ", ");
}

void check_generation_config(const LintedBundle& bundle, const FindingSink& found) {
  if (has_cache(bundle) && bundle.config().is_object() && bundle.file("generation_config.json") == nullptr)
    found.add("", "there is no generation_config.json");
}

void check_tokenizer_there(const LintedBundle& bundle, const FindingSink& found) {
  auto takes_tokens = [](const LintedGraph& graph) { return graph.input("input_ids") != nullptr; };
  if (std::none_of(bundle.graphs().begin(), bundle.graphs().end(), takes_tokens)) return;
  for (std::string_view name : {"tokenizer.json", "tokenizer_config.json"}) {
    if (bundle.file(name) == nullptr) found.add("", format("there is no {}", name));
  }
}

void check_tokenizer_class(const LintedBundle& bundle, const FindingSink& found) {
  JsonView name = bundle.json("tokenizer_config.json").find("tokenizer_class");
  if (name.as_string() == "TokenizersBackend")
    found.add("tokenizer_config.json", "tokenizer_class is \"TokenizersBackend\", a name of transformers 5");
}

std::span<const LintRule> lint_token_rules() { return kTokensRules; }

}  // namespace argosy::engines
