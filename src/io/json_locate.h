#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace argosy {

/// The byte at which a JSON text stops being valid, nesting deeper than `max_depth` included; nullopt if it is valid.
/// The parser says what is wrong but not where; this walks the text again, and only after an error.
std::optional<size_t> locate_json_error(std::string_view text, size_t max_depth);

/// The text with ".0" after every integer that does not fit 64 bits, so that it is read as a double, as Python's
/// writers mean it ("model_max_length": 1000000000000000019884624838656); nullopt if there is none.
std::optional<std::string> widen_big_integers(std::string_view text);

}  // namespace argosy
