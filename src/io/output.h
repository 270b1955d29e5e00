#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tensor/source.h"

namespace argosy {

/// What happens when the destination exists.
enum class Overwrite : uint8_t { kRefuse, kReplace };

/// Whether what is at a path may be replaced, and so removed; an error says why not. An empty one allows everything.
using MayReplace = std::function<Status(const std::filesystem::path& old)>;

/// A file that appears under its name only when it is complete: written under a temporary name beside it, synced,
/// renamed. Destroyed without commit(), it leaves nothing behind. A run that was killed leaves its temporary
/// (".<name>.<host>-<pid>-<n>.argosy-tmp"); the next create() of the same name on the same host removes it.
class OutputFile {
 public:
  /// The parent folder must exist. With kRefuse an existing destination is refused now, and again at commit().
  static Result<OutputFile> create(const std::filesystem::path& path, Overwrite overwrite);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text);
  /// Writes at a position, for parallel workers; does not move the end that write() appends to. Safe from several
  /// threads at once.
  Status write_at(uint64_t offset, std::span<const std::byte> bytes);
  /// Asks the system to write a range to the disk from now on, without waiting for it. Best effort; commit() syncs.
  void begin_sync(uint64_t offset, uint64_t size) const;
  /// Appends part of another file without bringing it into this process where the kernel can (copy_file_range), else by
  /// blocks.
  Status copy_from(const FileRange& range);
  /// Appends a whole tensor, by copy_from where it lies in a file, else streamed with that much scratch.
  Status append(const TensorSource& source, size_t scratch_bytes);
  uint64_t size() const;
  /// Where the bytes are until commit().
  const std::filesystem::path& path() const;
  ByteSink sink();  // appends; valid as long as this object or the one it was moved to
  /// Nothing may be written afterwards.
  Status commit();

 private:
  struct Impl;
  explicit OutputFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A folder that appears under its name only when complete. Files are created inside path() (the temporary name) by any
/// means; commit() syncs all of them and renames. With kReplace old and new folder are exchanged in one step
/// (RENAME_EXCHANGE) and the old one is removed afterwards: at any moment the name shows the old or the new one, whole.
/// File systems that cannot exchange get two renames, between which, for an instant, the name shows nothing.
/// Temporaries are named and removed as those of OutputFile.
///
/// `may_replace` is asked twice: of the folder in its place, and once more when its name shows the new one and nobody
/// can save anything into it. If it refuses then, the two are exchanged back.
class OutputFolder {
 public:
  /// Makes the parent folders that are missing. With kReplace only a folder (or a link to one) is replaced, not a file.
  static Result<OutputFolder> create(const std::filesystem::path& path, Overwrite overwrite);
  OutputFolder(OutputFolder&&) noexcept;
  OutputFolder& operator=(OutputFolder&&) noexcept;
  ~OutputFolder();
  const std::filesystem::path& path() const;
  Status commit(const MayReplace& may_replace = {});

 private:
  struct Impl;
  explicit OutputFolder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A file and those that belong to it and lie beside it: a model and its data. They are created inside path() under
/// their final names; commit() syncs them, takes an earlier main file away, moves the others to their places and the
/// main file last. So whoever finds the main file finds what belongs to it; a run that is killed while it replaces an
/// earlier one may leave none. Temporaries are named and removed as those of OutputFile.
class OutputFiles {
 public:
  /// `main` is the path of the main file. Makes the parent folders that are missing. With kRefuse an existing main file
  /// is refused; files beside it are replaced.
  static Result<OutputFiles> create(const std::filesystem::path& main, Overwrite overwrite);
  OutputFiles(OutputFiles&&) noexcept;
  OutputFiles& operator=(OutputFiles&&) noexcept;
  ~OutputFiles();
  const std::filesystem::path& path() const;
  /// `may_replace` is asked of each file that is in the way, the main file first, before anything moves.
  Status commit(const MayReplace& may_replace = {});

 private:
  struct Impl;
  explicit OutputFiles(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy
