#pragma once

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines {

/// The graphs of an encoder and a decoder as engines know them that give the decoder the encoder's hidden states:
/// `encoder` gives nothing but "last_hidden_state"; `decoder` takes "input_ids", "encoder_hidden_states" and, if it has
/// a mask of the encoder's text, "encoder_attention_mask", computes its states of cross attention when it is given
/// empty ones, and gives them back. Its states are "past_key_values.N.decoder.key", "….encoder.key" and so on.
struct Seq2SeqPlan {
  std::vector<Edit> encoder, decoder;
  int64_t layers = 0;
  std::vector<std::string> states;  // names of the decoder's inputs, by layer: decoder's key and value, encoder's
};

/// `engine` is for messages. What does not fit is an error with the reason.
Result<Seq2SeqPlan> plan_seq2seq(const SourceModel& model, std::string_view engine);

}  // namespace argosy::engines
