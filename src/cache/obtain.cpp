#include "cache/obtain.h"

#include <optional>
#include <system_error>

#include "base/text.h"
#include "cache/check_report.h"
#include "frontends/capture/weight_plan.h"
#include "frontends/read_program.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

struct RemoveAtEnd {
  explicit RemoveAtEnd(fs::path file) : path(std::move(file)) {}
  RemoveAtEnd(const RemoveAtEnd&) = delete;
  RemoveAtEnd& operator=(const RemoveAtEnd&) = delete;
  ~RemoveAtEnd() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  fs::path path;
};

Result<std::optional<Obtained>> look(const CaptureCache& cache, const CacheWork& work) {
  if (work.renew) return std::nullopt;
  std::vector<fs::path> damaged;
  ARGOSY_TRY(std::optional<CacheEntry> entry, cache.find(work.kind, work.key, &damaged));
  for (const fs::path& path : damaged) {
    if (work.on_damaged) work.on_damaged(path);
  }
  if (!entry) return std::nullopt;
  return Obtained{*std::move(entry), true, false};
}

/// Whether the file was written, from where others share theirs.
bool fetch(const CacheWork& work, const fs::path& output) {
  if (!work.fetch || work.renew) return false;
  auto take = [&]() -> Result<bool> {
    ARGOSY_TRY(bool is_there, work.fetch(output));
    if (is_there) ARGOSY_TRY_STATUS(check_readable(work.kind, output));
    return is_there;
  };
  Result<bool> taken = take();
  if (!taken && work.on_refused) work.on_refused(taken.error());
  return taken.value_or(false);
}

}  // namespace

Status check_readable(CacheKind kind, const fs::path& path) {
  if (kind == CacheKind::kWeightPlan) {
    ARGOSY_TRY([[maybe_unused]] WeightPlan plan, WeightPlan::read(path));
    return {};
  }
  if (kind == CacheKind::kCheck) {
    ARGOSY_TRY(CheckReport report, CheckReport::read(path));
    if (!report.ok) return fail(ErrorCode::kInvalidInput, "a check that did not pass is not remembered");
    return {};
  }
  ARGOSY_TRY(ProgramFormat format_of_file, program_format(path));
  if (format_of_file != ProgramFormat::kCapture) return fail(ErrorCode::kCorruptFile, "not a capture");
  ARGOSY_TRY([[maybe_unused]] Program program, read_program(path, {}));
  return {};
}

Result<Obtained> obtain(const CaptureCache& cache, const CacheWork& work) {
  ARGOSY_TRY(std::optional<Obtained> found, look(cache, work));
  if (found) return *std::move(found);
  ARGOSY_TRY([[maybe_unused]] CacheLock lock, cache.lock(work.kind, work.key, work.on_wait));
  ARGOSY_TRY(found, look(cache, work));
  if (found) return *std::move(found);
  ARGOSY_TRY(fs::path temporary, cache.temporary(work.kind, work.key));
  RemoveAtEnd remove_at_end(temporary);
  const bool was_fetched = fetch(work, temporary);
  if (!was_fetched) {
    ARGOSY_TRY_STATUS(work.make(temporary));
    Status readable = check_readable(work.kind, temporary);
    if (!readable) return fail(std::move(readable.error().in("what was just made for the cache")));
  }
  ARGOSY_TRY(CacheEntry entry, cache.add(work.kind, work.key, temporary));
  cache.set_name(work.kind, work.key, work.name);
  return Obtained{std::move(entry), false, was_fetched};
}

}  // namespace argosy
