#include "registry/signing.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"

namespace argosy {
namespace {

// RFC 8032 has test vectors of the algorithm; what is ours is how texts, keys and lines are written.

SigningKey make_key(const TestFolder& folder, const std::string& name) {
  auto key = SigningKey::create(folder.path() / name);
  EXPECT_TRUE(key.has_value());
  return *key;
}

std::string refusal(std::string_view text, std::string_view signatures, std::vector<PublicKey> trusted) {
  auto found = check_signatures(text, signatures, trusted);
  return found ? "" : found.error().message;
}

TEST(Signing, a_text_is_signed_and_checked) {
  TestFolder folder;
  const SigningKey key = make_key(folder, "key"), other = make_key(folder, "other");
  auto read = SigningKey::read(folder.path() / "key");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->public_key(), key.public_key());
  EXPECT_NE(other.public_key(), key.public_key());
  const std::string line = read->sign("text");
  EXPECT_EQ(line, key.sign("text"));  // the same input, the same bytes
  const std::string lines = other.sign("text") + "\n" + key.sign("earlier") + "\n" + line + "\n";
  auto signer = check_signatures("text", lines, std::vector{key.public_key()});
  ASSERT_TRUE(signer.has_value());
  EXPECT_EQ(*signer, key.public_key());
}

TEST(Signing, rejects_what_does_not_fit) {
  TestFolder folder;
  const SigningKey key = make_key(folder, "key"), other = make_key(folder, "other");
  const std::string line = key.sign("text");
  EXPECT_EQ(refusal("texu", line, {key.public_key()}), "its signature does not fit what it says");
  EXPECT_EQ(refusal("text", line, {other.public_key()}), "it is not signed by a key that is trusted");
  EXPECT_EQ(refusal("text", line, {}), "it is not signed by a key that is trusted");
  EXPECT_EQ(refusal("text", "", {key.public_key()}), "it has 0 signatures");
  const std::string no_signature = "its file of signatures has a line that is no signature";
  EXPECT_EQ(refusal("text", line + " more", {key.public_key()}), no_signature);
  EXPECT_EQ(refusal("text", line.substr(0, line.size() - 2), {key.public_key()}), no_signature);
  EXPECT_EQ(refusal("text", "rsa" + line.substr(7), {key.public_key()}), no_signature);
  std::string changed = line;
  changed.back() = changed.back() == '0' ? '1' : '0';
  EXPECT_EQ(refusal("text", changed, {key.public_key()}), "its signature does not fit what it says");
}

TEST(Signing, public_keys_are_written_in_one_way) {
  const std::string text = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  EXPECT_EQ(PublicKey::parse(text)->text(), text);
  for (std::string wrong : {text.substr(1), text + "0", std::string(64, 'A'), std::string(64, ' '), std::string()})
    EXPECT_FALSE(PublicKey::parse(wrong).has_value()) << wrong;
}

TEST(Signing, files_of_trusted_keys_have_comments) {
  TestFolder folder;
  const std::string one(64, '1'), two(64, '2');
  folder.write("keys", "# who\n\n" + one + " the first\r\n  " + two + "\n");
  auto keys = read_trusted_keys(folder.path() / "keys");
  ASSERT_TRUE(keys.has_value());
  ASSERT_EQ(keys->size(), 2U);
  EXPECT_EQ(keys->at(1).text(), two);
  EXPECT_TRUE(read_trusted_keys(folder.path() / "none")->empty());
  folder.write("keys", one + "\nnonsense\n");
  EXPECT_FALSE(read_trusted_keys(folder.path() / "keys").has_value());
}

}  // namespace
}  // namespace argosy
