#include "tensor/sha256.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/text.h"

namespace argosy {
namespace {

// The first 32 bits of the fractions of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<uint32_t, 8>;

void add_block(State& state, const std::byte* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) {
    w[i] = 0;
    for (size_t k = 0; k < 4; ++k) w[i] = (w[i] << 8) | std::to_integer<uint32_t>(block[4 * i + k]);
  }
  for (size_t i = 16; i < 64; ++i) {
    uint32_t small0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t small1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + small0 + w[i - 7] + small1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    uint32_t big1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    uint32_t first = h + big1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    uint32_t big0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    uint32_t second = big0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + second;
  }
  State addend = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += addend[i];
}

}  // namespace

void Sha256::add(std::span<const std::byte> bytes) {
  size_t filled = size_ % block_.size();
  size_ += bytes.size();
  if (filled > 0) {
    size_t part = std::min(block_.size() - filled, bytes.size());
    if (part > 0) std::memcpy(block_.data() + filled, bytes.data(), part);
    bytes = bytes.subspan(part);
    if (filled + part < block_.size()) return;
    add_block(state_, block_.data());
  }
  while (bytes.size() >= block_.size()) {
    add_block(state_, bytes.data());
    bytes = bytes.subspan(block_.size());
  }
  if (!bytes.empty()) std::memcpy(block_.data(), bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  // The rest, a set bit, zeros, and the length in bits fill one or two blocks.
  std::array<std::byte, 128> tail{};
  size_t rest = size_ % block_.size();
  std::memcpy(tail.data(), block_.data(), rest);
  tail[rest] = std::byte{0x80};
  size_t tail_size = rest < 56 ? 64 : 128;
  uint64_t bits = size_ * 8;
  for (size_t i = 0; i < 8; ++i) tail[tail_size - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
  for (size_t i = 0; i < tail_size; i += 64) add_block(state_, tail.data() + i);
  std::string text;
  for (uint32_t word : state_) text += format("{:08x}", word);
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

}  // namespace argosy
