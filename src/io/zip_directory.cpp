#include <algorithm>
#include <optional>

#include "base/text.h"
#include "io/names.h"
#include "io/zip.h"
#include "io/zip_format.h"

namespace argosy {
namespace {

using zip::load;

constexpr uint64_t kMaxDirectory = uint64_t{64} << 20;

/// One row of the directory, before it is held against its local header.
struct CentralEntry {
  std::string name;
  uint64_t header_offset = 0, size = 0, compressed_size = 0;
  uint32_t crc = 0;
  uint16_t flags = 0, method = 0;
};

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

class DirectoryParser {
 public:
  DirectoryParser(const ReadAt& read_at, uint64_t file_size, std::string_view name)
      : read_at_(read_at), file_size_(file_size), name_(name) {}

  Result<std::vector<ZipEntry>> parse() {
    ARGOSY_TRY(Directory directory, find_directory());
    if (directory.size > kMaxDirectory) {
      return corrupt(format("its directory claims {}, more than the {} that are read", format_bytes(directory.size),
                            format_bytes(kMaxDirectory)));
    }
    if (directory.count > directory.size / zip::kCentralSize) {
      return corrupt(format("its directory claims {} entries in {} bytes", directory.count, directory.size));
    }
    ARGOSY_TRY(std::string bytes, text_at(directory.offset, directory.size));
    std::vector<ZipEntry> entries;
    std::vector<std::pair<uint64_t, uint64_t>> extents;  // header offset and end of data
    entries.reserve(directory.count);
    size_t position = 0;
    for (uint64_t i = 0; i < directory.count; ++i) {
      ARGOSY_TRY(CentralEntry central, read_central(bytes, position));
      ARGOSY_TRY_STATUS(check_central(central));
      ARGOSY_TRY(uint64_t offset, check_local(central, directory));
      extents.emplace_back(central.header_offset, offset + central.size);
      if (central.name.back() == '/') continue;
      entries.push_back({std::move(central.name), offset, central.size, central.crc});
    }
    if (position != bytes.size()) {
      return corrupt(
          format("its directory has {} bytes, but its {} entries take {}", bytes.size(), directory.count, position));
    }
    std::sort(extents.begin(), extents.end());
    for (size_t i = 1; i < extents.size(); ++i) {
      if (extents[i].first < extents[i - 1].second) {
        return corrupt(format("entries overlap: one ends at byte {}, the next begins at byte {}", extents[i - 1].second,
                              extents[i].first));
      }
    }
    return entries;
  }

 private:
  tl::unexpected<Error> corrupt(std::string why, std::string hint =
                                                     "the file is damaged or was made by a faulty "
                                                     "tool; get or write it again") const {
    return fail(ErrorCode::kCorruptFile, format("{} is not a usable zip file: {}", name_, why), std::move(hint));
  }

  /// Bytes that must lie inside the file.
  Result<std::string> text_at(uint64_t offset, uint64_t size) const {
    if (offset > file_size_ || size > file_size_ - offset) {
      return corrupt(format("it needs {} bytes at byte {}, but has {} bytes", size, offset, file_size_));
    }
    std::string text(size, '\0');
    ARGOSY_TRY_STATUS(read_at_(offset, std::as_writable_bytes(std::span(text))));
    return text;
  }

  Result<Directory> find_directory() const {
    uint64_t tail_size = std::min(file_size_, zip::kEndSize + zip::kMaxComment);
    ARGOSY_TRY(std::string tail, text_at(file_size_ - tail_size, tail_size));
    // The last end record whose comment reaches exactly to the end of the file.
    std::optional<uint64_t> found;  // any end record
    for (uint64_t i = tail_size >= zip::kEndSize ? tail_size - zip::kEndSize + 1 : 0; i-- > 0;) {
      if (load<uint32_t>(&tail[i]) != zip::kEndSignature) continue;
      if (load<uint16_t>(&tail[i + 20]) == tail_size - i - zip::kEndSize) {
        return read_end(tail.substr(i, zip::kEndSize), file_size_ - tail_size + i);
      }
      if (!found) found = i;
    }
    if (found) {
      uint64_t comment = load<uint16_t>(&tail[*found + 20]), rest = tail_size - *found - zip::kEndSize;
      return comment > rest ? corrupt(format("{} bytes are missing at its end", comment - rest))
                            : corrupt(format("{} bytes follow its end", rest - comment));
    }
    return no_end();
  }

  tl::unexpected<Error> no_end() const {
    if (file_size_ == 0) return corrupt("it is empty");
    auto start = text_at(0, std::min<uint64_t>(4, file_size_));
    if (!start) return fail(std::move(start).error());
    if (start->size() < 4 || load<uint32_t>(start->data()) != zip::kLocalSignature) {
      return corrupt("it does not begin like one", "it is another kind of file; check what it is");
    }
    return corrupt(format("its directory is missing, the file ends after {} bytes", file_size_),
                   "the download or copy did not complete; get this file again");
  }

  Result<Directory> read_end(const std::string& end, uint64_t end_offset) const {
    Directory directory{load<uint32_t>(&end[16]), load<uint32_t>(&end[12]), load<uint16_t>(&end[10])};
    if (load<uint16_t>(&end[4]) != 0 || load<uint16_t>(&end[6]) != 0 || load<uint16_t>(&end[8]) != directory.count) {
      return corrupt("it is one part of a split archive", "join the parts first");
    }
    if (end_offset >= zip::kLocator64Size) {
      ARGOSY_TRY(std::string locator, text_at(end_offset - zip::kLocator64Size, zip::kLocator64Size));
      if (load<uint32_t>(&locator[0]) == zip::kLocator64Signature) {
        uint64_t end64_offset = load<uint64_t>(&locator[8]);
        ARGOSY_TRY(std::string end64, text_at(end64_offset, zip::kEnd64Size));
        if (load<uint32_t>(&end64[0]) != zip::kEnd64Signature) {
          return corrupt(format("its zip64 locator points at byte {}, where no zip64 record is", end64_offset));
        }
        Directory wide{load<uint64_t>(&end64[48]), load<uint64_t>(&end64[40]), load<uint64_t>(&end64[32])};
        if ((directory.offset != zip::kFull32 && directory.offset != wide.offset) ||
            (directory.size != zip::kFull32 && directory.size != wide.size) ||
            (directory.count != zip::kFull16 && directory.count != wide.count)) {
          return corrupt("its two end-of-directory records contradict each other");
        }
        directory = wide;
        end_offset = end64_offset;
      }
    }
    if (directory.offset > end_offset || directory.size != end_offset - directory.offset) {
      return corrupt(format("its directory of {} bytes at byte {} does not end where its end record begins, at byte {}",
                            directory.size, directory.offset, end_offset));
    }
    return directory;
  }

  /// Replaces what is saturated by the values of the zip64 field. `wanted` in the order of the format.
  Status read_extra(std::string_view extra, std::span<uint64_t* const> wanted, std::string_view entry) const {
    size_t position = 0;
    while (extra.size() - position >= 4) {
      auto id = load<uint16_t>(&extra[position]);
      auto size = load<uint16_t>(&extra[position + 2]);
      position += 4;
      if (size > extra.size() - position)
        return corrupt(format("an extra field of entry {} is cut off", quoted(entry)));
      if (id == zip::kExtra64) {
        if (size < wanted.size() * 8) return corrupt(format("the zip64 field of entry {} is too short", quoted(entry)));
        for (size_t i = 0; i < wanted.size(); ++i) *wanted[i] = load<uint64_t>(&extra[position + i * 8]);
        return {};
      }
      position += size;
    }
    if (!wanted.empty()) return corrupt(format("entry {} lacks its zip64 field", quoted(entry)));
    return {};
  }

  Result<CentralEntry> read_central(const std::string& bytes, size_t& position) const {
    if (bytes.size() - position < zip::kCentralSize || load<uint32_t>(&bytes[position]) != zip::kCentralSignature) {
      return corrupt(format("byte {} of its directory does not begin an entry", position));
    }
    const char* header = &bytes[position];
    uint64_t name_size = load<uint16_t>(header + 28), extra_size = load<uint16_t>(header + 30);
    uint64_t comment_size = load<uint16_t>(header + 32);
    if (bytes.size() - position - zip::kCentralSize < name_size + extra_size + comment_size) {
      return corrupt("the last entry of its directory is cut off");
    }
    CentralEntry entry;
    entry.flags = load<uint16_t>(header + 8);
    entry.method = load<uint16_t>(header + 10);
    entry.crc = load<uint32_t>(header + 16);
    entry.compressed_size = load<uint32_t>(header + 20);
    entry.size = load<uint32_t>(header + 24);
    entry.header_offset = load<uint32_t>(header + 42);
    entry.name.assign(header + zip::kCentralSize, name_size);
    std::vector<uint64_t*> wanted;
    for (uint64_t* field : {&entry.size, &entry.compressed_size, &entry.header_offset}) {
      if (*field == zip::kFull32) wanted.push_back(field);
    }
    std::string_view extra(header + zip::kCentralSize + name_size, extra_size);
    ARGOSY_TRY_STATUS(read_extra(extra, wanted, entry.name));
    position += zip::kCentralSize + name_size + extra_size + comment_size;
    return entry;
  }

  Status check_central(const CentralEntry& entry) const {
    std::string_view name = entry.name;
    bool is_folder = name.ends_with('/');
    if (is_folder) name.remove_suffix(1);
    if (auto problem = problem_of_entry_name(name); !problem.empty()) {
      return corrupt(format("the name {} of an entry {}", quoted(entry.name), problem));
    }
    constexpr uint16_t kUnreadable =
        zip::kFlagEncrypted | zip::kFlagPatch | zip::kFlagStrongEncryption | zip::kFlagMaskedHeader;
    if ((entry.flags & kUnreadable) != 0) {
      return fail(ErrorCode::kUnsupportedFeature, format("entry {} of {} is encrypted", quoted(entry.name), name_),
                  "unpack it and pack it again without a password");
    }
    if (entry.method != 0) {
      return fail(ErrorCode::kUnsupportedFeature,
                  format("entry {} of {} is compressed (method {})", quoted(entry.name), name_, entry.method),
                  "pack it again without compression (zip -0); tensors are read in place");
    }
    if (entry.size != entry.compressed_size) {
      return corrupt(format("entry {} is not compressed, but claims {} bytes stored as {}", quoted(entry.name),
                            entry.size, entry.compressed_size));
    }
    if (is_folder && entry.size != 0) return corrupt(format("folder {} has contents of its own", quoted(entry.name)));
    return {};
  }

  /// Offset of the entry's bytes.
  Result<uint64_t> check_local(const CentralEntry& entry, const Directory& directory) const {
    uint64_t before_directory = directory.offset;
    if (entry.header_offset > before_directory || before_directory - entry.header_offset < zip::kLocalSize) {
      return corrupt(format("entry {} begins at byte {}, not before the directory at byte {}", quoted(entry.name),
                            entry.header_offset, before_directory));
    }
    uint64_t room = before_directory - entry.header_offset;
    ARGOSY_TRY(std::string start,
               text_at(entry.header_offset, std::min(room, zip::kLocalSize + entry.name.size() + 128)));
    if (load<uint32_t>(&start[0]) != zip::kLocalSignature) {
      return corrupt(format("entry {} has no header at byte {}", quoted(entry.name), entry.header_offset));
    }
    uint64_t name_size = load<uint16_t>(&start[26]), extra_size = load<uint16_t>(&start[28]);
    uint64_t data = zip::kLocalSize + name_size + extra_size;
    if (data > room || entry.size > room - data) {
      return corrupt(format("entry {} claims {} bytes from byte {}, which reach into the directory at byte {}",
                            quoted(entry.name), entry.size, entry.header_offset + data, before_directory));
    }
    if (start.size() < data) {
      ARGOSY_TRY(start, text_at(entry.header_offset, data));
    }
    if (std::string_view(start).substr(zip::kLocalSize, name_size) != entry.name) {
      return corrupt(format("entry {} has another name in its own header", quoted(entry.name)));
    }
    if (load<uint16_t>(&start[6]) != entry.flags || load<uint16_t>(&start[8]) != entry.method) {
      return corrupt(format("entry {} has other flags or another method in its own header", quoted(entry.name)));
    }
    uint64_t compressed = load<uint32_t>(&start[18]), size = load<uint32_t>(&start[22]);
    std::vector<uint64_t*> wanted;
    for (uint64_t* field : {&size, &compressed}) {
      if (*field == zip::kFull32) wanted.push_back(field);
    }
    ARGOSY_TRY_STATUS(
        read_extra(std::string_view(start).substr(zip::kLocalSize + name_size, extra_size), wanted, entry.name));
    // With a data descriptor the header may leave CRC and sizes at zero.
    bool has_descriptor = (entry.flags & zip::kFlagDescriptor) != 0;
    auto differs = [&](uint64_t here, uint64_t there) { return here != there && !(has_descriptor && here == 0); };
    if (differs(size, entry.size) || differs(compressed, entry.size) ||
        differs(load<uint32_t>(&start[14]), entry.crc)) {
      return corrupt(format("entry {} has another size or checksum in its own header", quoted(entry.name)));
    }
    return entry.header_offset + data;
  }

  const ReadAt& read_at_;
  uint64_t file_size_;
  std::string_view name_;
};

}  // namespace

std::string_view problem_of_entry_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > zip::kFull16) return "is longer than 65535 bytes";
  if (name.find('\0') != std::string_view::npos) return "holds a NUL";
  if (!is_utf8(name)) return "is not UTF-8";
  if (!is_plain_relative_path(name)) return "is not a plain relative path, and might leave its folder";
  return {};
}

Result<std::vector<ZipEntry>> read_zip_directory(const ReadAt& read_at, uint64_t file_size, std::string_view name) {
  ARGOSY_TRY(auto entries, DirectoryParser(read_at, file_size, name).parse());
  return entries;
}

}  // namespace argosy
