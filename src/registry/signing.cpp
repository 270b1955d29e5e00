#include "registry/signing.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "base/text.h"
#include "io/file.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAlgorithm = "ed25519";
constexpr std::string_view kSecretHead = "argosy-signing-key ed25519 ";
// So that no signature of another kind of text is one of an index.
constexpr std::string_view kSignedHead = "argosy-registry 1\n";
constexpr uint64_t kMaxSecretFile = 1024, kMaxTrustedFile = uint64_t{1} << 20;
constexpr size_t kMaxSignatures = 64;

static_assert(crypto_sign_PUBLICKEYBYTES == 32 && crypto_sign_SECRETKEYBYTES == 64 && crypto_sign_BYTES == 64);
using Signature = std::array<uint8_t, crypto_sign_BYTES>;
using Seed = std::array<uint8_t, crypto_sign_SEEDBYTES>;

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

template <size_t kSize>
bool read_hex(std::string_view text, std::array<uint8_t, kSize>& bytes) {
  if (text.size() != 2 * kSize) return false;
  for (size_t i = 0; i < kSize; ++i) {
    const int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return true;
}

std::string to_hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (uint8_t byte : bytes) text += format("{:02x}", byte);
  return text;
}

std::string signed_text(std::string_view text) { return std::string(kSignedHead) + std::string(text); }

const uint8_t* bytes_of(const std::string& text) { return reinterpret_cast<const uint8_t*>(text.data()); }

/// The next word of a line; empty at its end.
std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
  std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

Result<PublicKey> PublicKey::parse(std::string_view text) {
  PublicKey key;
  if (!read_hex(text, key.bytes)) {
    return fail(ErrorCode::kInvalidInput, format("{} is not a public key", quoted(text)),
                "give 64 hexadecimal digits in lower case, as argosy cache keygen prints them");
  }
  return key;
}

std::string PublicKey::text() const { return to_hex(bytes); }

Result<std::vector<PublicKey>> read_trusted_keys(const fs::path& path) {
  std::error_code ignored;
  std::vector<PublicKey> keys;
  if (path.empty() || !fs::exists(path, ignored)) return keys;
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxTrustedFile));
  for (std::string_view line : lines_of(text)) {
    std::string_view word = next_word(line);
    if (word.empty() || word.starts_with('#')) continue;
    auto key = PublicKey::parse(word);
    if (!key) return fail(std::move(key.error().in(quoted(path.native(), 1000))));
    keys.push_back(*key);
  }
  return keys;
}

Result<SigningKey> SigningKey::create(const fs::path& path) {
  SigningKey key;
  Seed seed;
  // What libsodium makes random bytes of, without its start-up code.
  if (::getentropy(seed.data(), seed.size()) != 0)
    return fail(ErrorCode::kIo, "the system gives no random numbers", "try again");
  PublicKey made;
  crypto_sign_seed_keypair(made.bytes.data(), key.secret_.data(), seed.data());
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return fail(system_error("create", path, errno));
  const std::string text = format("{}{}\n", kSecretHead, to_hex(seed));
  const bool is_written = ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int failure = errno;
  if (::close(descriptor) != 0 || !is_written) return fail(system_error("write", path, failure));
  return key;
}

Result<SigningKey> SigningKey::read(const fs::path& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(ErrorCode::kInvalidInput, format("others may read {}", quoted(path.native(), 1000)),
                "a signing key is its owner's alone: chmod 600");
  }
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxSecretFile));
  std::string_view rest = text;
  Seed seed;
  if (!rest.starts_with(kSecretHead) || !read_hex(rest.substr(kSecretHead.size()).substr(0, 64), seed)) {
    return fail(ErrorCode::kCorruptFile, format("{} is no signing key", quoted(path.native(), 1000)),
                "argosy cache keygen makes one");
  }
  SigningKey key;
  PublicKey made;
  crypto_sign_seed_keypair(made.bytes.data(), key.secret_.data(), seed.data());
  return key;
}

PublicKey SigningKey::public_key() const {
  PublicKey key;  // the second half of the secret
  std::copy(secret_.begin() + 32, secret_.end(), key.bytes.begin());
  return key;
}

std::string SigningKey::sign(std::string_view text) const {
  const std::string whole = signed_text(text);
  Signature signature;
  crypto_sign_detached(signature.data(), nullptr, bytes_of(whole), whole.size(), secret_.data());
  return format("{} {} {}", kAlgorithm, public_key().text(), to_hex(signature));
}

Result<PublicKey> check_signatures(std::string_view text, std::string_view signatures,
                                   std::span<const PublicKey> trusted) {
  const std::vector<std::string_view> lines = lines_of(signatures);
  if (lines.empty() || lines.size() > kMaxSignatures)
    return fail(ErrorCode::kCorruptFile, format("it has {} signatures", lines.size()));
  const std::string whole = signed_text(text);
  bool is_by_trusted = false;
  for (std::string_view line : lines) {
    PublicKey key;
    Signature signature;
    if (next_word(line) != kAlgorithm || !read_hex(next_word(line), key.bytes) ||
        !read_hex(next_word(line), signature) || !next_word(line).empty()) {
      return fail(ErrorCode::kCorruptFile, "its file of signatures has a line that is no signature");
    }
    if (std::ranges::find(trusted, key) == trusted.end()) continue;
    is_by_trusted = true;
    if (crypto_sign_verify_detached(signature.data(), bytes_of(whole), whole.size(), key.bytes.data()) == 0) return key;
  }
  if (is_by_trusted) return fail(ErrorCode::kCorruptFile, "its signature does not fit what it says");
  return fail(ErrorCode::kInvalidInput, "it is not signed by a key that is trusted",
              "trust a key by --registry-key, or in registry-keys.txt");
}

}  // namespace argosy
