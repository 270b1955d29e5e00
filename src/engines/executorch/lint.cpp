// What ExecuTorch's runner of language models and optimum-executorch's classes want of a folder.

#include <algorithm>

#include "engines/lint_rule.h"

namespace argosy::engines {

const LintedProgram::Method* LintedProgram::method(std::string_view name) const {
  auto found = std::find_if(methods.begin(), methods.end(), [&](const Method& each) { return each.name == name; });
  return found == methods.end() ? nullptr : &*found;
}

const int64_t* LintedProgram::number(std::string_view name) const {
  const Method* found = method(name);
  return found == nullptr || found->constants.empty() ? nullptr : std::get_if<int64_t>(&found->constants[0]);
}

namespace {

using Method = LintedProgram::Method;
using Tensor = LintedProgram::Tensor;

constexpr std::string_view kProgram = "model.pte";
constexpr std::string_view kTokenizer = "tokenizer.json";

/// The method that computes logits of a program that generates text from positions; null if it does not.
const Method* decoder_of(const LintedProgram& program) {
  for (std::string_view name : {"text_decoder", "forward"}) {
    const Method* method = program.method(name);
    if (method != nullptr && (name == "text_decoder" || program.method("get_max_seq_len") != nullptr)) return method;
  }
  return nullptr;
}

template <class Check>
void for_each_program(const LintedBundle& bundle, Check check) {
  for (const LintedProgram& program : bundle.programs()) {
    if (program.problem.empty()) check(program);
  }
}

void check_program(const LintedBundle& bundle, const FindingSink& found) {
  if (bundle.file(kProgram) == nullptr) found.add("", "there is no model.pte");
}

void check_readable(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedProgram& program : bundle.programs()) {
    if (!program.problem.empty()) found.add(program.file, program.problem);
  }
}

void check_data(const LintedBundle& bundle, const FindingSink& found) {
  for_each_program(bundle, [&](const LintedProgram& program) {
    std::string data = program.file.substr(0, program.file.size() - 4) + ".ptd";
    if (!program.external_data.empty() && !bundle.has(data))
      found.add(program.file, format("{} of its weights are in a .ptd file, {} is not there",
                                     program.external_data.size(), quoted(data)));
  });
}

void check_entry(const LintedBundle& bundle, const FindingSink& found) {
  constexpr std::string_view kEntries[] = {"forward", "text_decoder", "encoder"};
  for_each_program(bundle, [&](const LintedProgram& program) {
    bool has_entry = std::any_of(std::begin(kEntries), std::end(kEntries),
                                 [&](std::string_view name) { return program.method(name) != nullptr; });
    bool is_plain = bundle.json("bundle.json").find("components").size() > 1;
    if (!has_entry && !is_plain) found.add(program.file, "it has neither forward nor text_decoder");
  });
}

void check_length(const LintedBundle& bundle, const FindingSink& found) {
  for_each_program(bundle, [&](const LintedProgram& program) {
    const Method* decoder = program.method("text_decoder");
    if (decoder == nullptr) decoder = program.method("forward");
    if (decoder == nullptr || decoder->inputs.size() < 2 || decoder->inputs.back().sizes.size() != 1) return;
    if (program.number("get_max_seq_len") == nullptr)
      found.add(program.file, "get_max_seq_len is missing, without which the runner refuses a program");
  });
}

void check_length_fits(const LintedBundle& bundle, const FindingSink& found) {
  for_each_program(bundle, [&](const LintedProgram& program) {
    const Method* decoder = decoder_of(program);
    const int64_t* length = program.number("get_max_seq_len");
    if (decoder == nullptr || length == nullptr || decoder->inputs.empty() || decoder->inputs[0].sizes.size() < 2)
      return;
    int64_t room = decoder->inputs[0].sizes[1];
    bool is_dynamic = room > 1;
    if (is_dynamic && *length > room)
      found.add(program.file, format("get_max_seq_len is {}, {} takes {} tokens: the runner passes as many at once",
                                     *length, decoder->name, room));
    const int64_t* context = program.number("get_max_context_len");
    if (context != nullptr && *context < *length)
      found.add(program.file, format("get_max_context_len is {}, get_max_seq_len {}", *context, *length));
  });
}

void check_positions(const LintedBundle& bundle, const FindingSink& found) {
  for_each_program(bundle, [&](const LintedProgram& program) {
    const Method* decoder = decoder_of(program);
    if (decoder == nullptr || decoder->inputs.size() < 2) return;
    const Tensor& positions = decoder->inputs.back();
    if (positions.dtype != "i64" || positions.sizes.size() != 1)
      found.add(program.file, format("the last input of {} is not a list of positions, i64", decoder->name));
  });
}

void check_outputs(const LintedBundle& bundle, const FindingSink& found) {
  for_each_program(bundle, [&](const LintedProgram& program) {
    const Method* decoder = decoder_of(program);
    if (decoder == nullptr) return;
    if (decoder->outputs.size() != 1)
      found.add(program.file,
                format("{} has {} outputs, the runner wants logits alone", decoder->name, decoder->outputs.size()));
  });
}

void check_cache_flag(const LintedBundle& bundle, const FindingSink& found) {
  for_each_program(bundle, [&](const LintedProgram& program) {
    const Method* decoder = decoder_of(program);
    const Method* flag = program.method("use_kv_cache");
    if (decoder == nullptr || flag == nullptr || flag->constants.empty()) return;
    const bool* says = std::get_if<bool>(&flag->constants[0]);
    bool has_positions = decoder->inputs.size() > 1;
    if (says != nullptr && *says != has_positions)
      found.add(program.file, format("use_kv_cache is {}, but {} is given {}", *says, decoder->name,
                                     has_positions ? "positions" : "no positions"));
  });
}

void check_multimodal(const LintedBundle& bundle, const FindingSink& found) {
  for_each_program(bundle, [&](const LintedProgram& program) {
    bool has_media = program.method("vision_encoder") != nullptr || program.method("audio_encoder") != nullptr;
    if (!has_media) return;
    for (std::string_view name : {"token_embedding", "text_decoder"}) {
      if (program.method(name) == nullptr) found.add(program.file, format("{} is missing", name));
    }
  });
}

void check_tokenizer(const LintedBundle& bundle, const FindingSink& found) {
  for_each_program(bundle, [&](const LintedProgram& program) {
    if (program.file != kProgram || decoder_of(program) == nullptr) return;
    bool has_tokenizer = std::any_of(bundle.files().begin(), bundle.files().end(), [](const LintedFile& file) {
      return file.name.starts_with("tokenizer") && (file.name.ends_with(".json") || file.name.ends_with(".model"));
    });
    if (!has_tokenizer && !bundle.has("tekken.json"))
      found.add("", "there is no tokenizer, which runners are given beside the program");
  });
}

void check_vocabulary(const LintedBundle& bundle, const FindingSink& found) {
  for_each_program(bundle, [&](const LintedProgram& program) {
    const Method* decoder = decoder_of(program);
    if (decoder == nullptr || decoder->outputs.empty() || decoder->outputs[0].sizes.empty()) return;
    if (!bundle.vocabulary() || bundle.vocabulary()->is_empty()) return;
    int64_t logits = decoder->outputs[0].sizes.back();
    if (bundle.vocabulary()->size() > logits)
      found.add(kTokenizer, format("it has {} tokens, the program's logits are of {}: the runner reads beyond them",
                                   bundle.vocabulary()->size(), logits));
  });
}

void check_end(const LintedBundle& bundle, const FindingSink& found) {
  for_each_program(bundle, [&](const LintedProgram& program) {
    const Method* decoder = decoder_of(program);
    if (decoder == nullptr) return;
    const Method* ends = program.method("get_eos_ids");
    if (ends == nullptr) ends = program.method("get_eos_id");
    std::vector<int64_t> wanted = integers(bundle.json("generation_config.json").find("eos_token_id"));
    if (wanted.empty()) wanted = integers(bundle.text_config().find("eos_token_id"));
    if (wanted.empty()) return;
    std::vector<std::string> lacking;
    for (int64_t id : wanted) {
      bool is_there = ends != nullptr && std::any_of(ends->constants.begin(), ends->constants.end(),
                                                     [&](const LintedProgram::Constant& value) {
                                                       return value == LintedProgram::Constant(id);
                                                     });
      if (!is_there) lacking.push_back(format("{}", id));
    }
    if (!lacking.empty()) found.add(program.file, format("get_eos_ids lacks {}, which end texts", join(lacking, ", ")));
  });
}

constexpr LintRule kExecutorchRules[] = {
    {"executorch-program-missing", kLintError, "a folder without model.pte", "export again, or name the file so",
     check_program},
    {"executorch-program-unreadable", kLintError, "a .pte file that is none, or is damaged", "export again",
     check_readable},
    {"executorch-data-missing", kLintError, "a program whose weights are in a .ptd file that is not there",
     "copy the .ptd file of the same export", check_data},
    {"executorch-entry-missing", kLintError, "a program without a method that runners call",
     "export with --task, or name the method forward", check_entry},
    {"executorch-length-missing", kLintError, "a decoder with positions that does not say how long texts may be",
     "export with --task text-generation", check_length},
    {"executorch-length", kLintWarning, "a program that says it takes more tokens than it does",
     "export with the --max-seq-len that is wanted", check_length_fits},
    {"executorch-positions", kLintError, "a decoder whose last input is not the positions of its tokens",
     "export with --task text-generation", check_positions},
    {"executorch-outputs", kLintError, "a decoder that returns more than logits",
     "export with --task text-generation: caches are inside the program then", check_outputs},
    {"executorch-cache-flag", kLintError, "a program that says it has a cache and has none, or the other way round",
     "export again", check_cache_flag},
    {"executorch-multimodal", kLintError, "an encoder of media without token_embedding or text_decoder",
     "export with --task multimodal-text-to-text", check_multimodal},
    {"executorch-tokenizer-missing", kLintWarning, "a program that generates text, without a tokenizer",
     "put tokenizer.json beside it", check_tokenizer},
    {"executorch-vocabulary", kLintError, "a tokenizer with more tokens than there are logits",
     "use the tokenizer of the model; the runner samples among as many logits as it has tokens", check_vocabulary},
    {"executorch-end", kLintWarning, "a program that does not stop where the model's configuration says",
     "export again with that configuration", check_end},
};

}  // namespace

std::span<const LintRule> lint_executorch_rules() { return kExecutorchRules; }

}  // namespace argosy::engines
