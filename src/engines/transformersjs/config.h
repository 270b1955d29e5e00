#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"
#include "engines/rewrite_json.h"

namespace argosy::engines::transformersjs {

/// Changes of config.json that are known before the graphs are laid out.
struct ConfigPlan {
  std::vector<JsonChange> changes;
  std::vector<std::string> notes;
};

/// Makes config.json name the cache of a text decoder with this many layers of keys and values, which is described by
/// the member `part` of the configuration, or by all of it if that is empty.
void describe_decoder(const SourceModel& model, const std::string& part, int64_t layers, ConfigPlan& plan);
/// The same for the decoder of an encoder and decoder.
void describe_seq2seq(const SourceModel& model, int64_t layers, ConfigPlan& plan);

/// Adds names of classes, which the engine needs and transformers does not.
void add_labels(const SourceModel& model, ConfigPlan& plan);

/// The text of config.json: with these changes, and with which graphs have data files, how many, and their dtype
/// ("fp32", "fp16").
Result<std::string> config_text(const SourceModel& model, const ConfigPlan& plan,
                                const std::vector<WrittenGraph>& graphs, const std::string& dtype);

}  // namespace argosy::engines::transformersjs
