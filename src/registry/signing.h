#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace argosy {

// Signatures by ed25519, as registries have them beside each index.

/// Whose signatures are trusted. Written as 64 hexadecimal digits.
struct PublicKey {
  std::array<uint8_t, 32> bytes{};

  static Result<PublicKey> parse(std::string_view text);
  std::string text() const;
  friend bool operator==(const PublicKey&, const PublicKey&) = default;
};

/// The keys of a file: one a line, a comment behind it; lines that begin with # are comments. A file that is not there
/// has none.
Result<std::vector<PublicKey>> read_trusted_keys(const std::filesystem::path& path);

/// What signs. Kept in a file that its owner alone may read.
class SigningKey {
 public:
  /// Makes a key and writes it; a file that is there is refused.
  static Result<SigningKey> create(const std::filesystem::path& path);
  /// Refuses a file that others may read.
  static Result<SigningKey> read(const std::filesystem::path& path);
  PublicKey public_key() const;
  /// "ed25519 PUBLIC-KEY SIGNATURE": a line of a file of signatures, without its end.
  std::string sign(std::string_view text) const;

 private:
  SigningKey() = default;
  std::array<uint8_t, 64> secret_{};
};

/// The first of the trusted keys that one of `signatures`, lines as sign() makes them, is of. An error says by name
/// what is wrong: no signatures, none by a trusted key, one by a trusted key that does not fit the text.
Result<PublicKey> check_signatures(std::string_view text, std::string_view signatures,
                                   std::span<const PublicKey> trusted);

}  // namespace argosy
