#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace argosy::zip {

// Numbers of the zip format (APPNOTE.TXT 6.3), shared by reader and writer. All fields are little-endian.
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kDescriptorSignature = 0x08074b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocator64Size = 20;
constexpr uint64_t kMaxComment = 0xFFFF;

constexpr uint16_t kFlagEncrypted = 1 << 0;
constexpr uint16_t kFlagDescriptor = 1 << 3;  // CRC and sizes follow the data
constexpr uint16_t kFlagPatch = 1 << 5;
constexpr uint16_t kFlagStrongEncryption = 1 << 6;
constexpr uint16_t kFlagUtf8 = 1 << 11;
constexpr uint16_t kFlagMaskedHeader = 1 << 13;

constexpr uint16_t kExtra64 = 0x0001;
constexpr uint16_t kExtraPadding = 0x4246;  // "FB", as torch names the padding before an entry's bytes
constexpr uint16_t kFull16 = 0xFFFF;        // "see the zip64 field"
constexpr uint32_t kFull32 = 0xFFFFFFFF;
constexpr uint64_t kAlignment = 64;

template <class T>
T load(const char* bytes) {
  static_assert(std::is_unsigned_v<T>);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
void store(std::string& out, T value) {
  static_assert(std::is_unsigned_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace argosy::zip
