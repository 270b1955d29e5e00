#include "frontends/schema_library.h"

#include "base/text.h"
#include "io/file.h"

namespace argosy {
namespace {

constexpr uint64_t kMaxSchemaFile = 64u << 20;

}  // namespace

Result<SchemaLibrary> SchemaLibrary::load(const std::filesystem::path& path) {
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxSchemaFile));
  SchemaLibrary library;
  size_t start = 0;
  for (size_t line = 1; start < text.size(); ++line) {
    size_t end = std::min(text.find('\n', start), text.size());
    std::string_view schema(text.data() + start, end - start);
    start = end + 1;
    if (!schema.empty() && schema.back() == '\r') schema.remove_suffix(1);
    if (schema.empty() || schema.front() == '#') continue;
    if (Status status = library.add(schema); !status)
      return fail(std::move(status.error().in(format("line {} of {}", line, path.string()))));
  }
  return library;
}

Status SchemaLibrary::add(std::string_view text) {
  size_t open = text.find('(');
  if (open == std::string_view::npos || open == 0) {
    return fail(ErrorCode::kInvalidInput, format("{} is not an op schema", quoted(text)),
                "each schema looks like aten::relu(Tensor self) -> Tensor");
  }
  auto [entry, is_new] = texts_.try_emplace(op_name_of(text.substr(0, open)), text);
  if (!is_new && entry->second != text) {
    return fail(ErrorCode::kInvalidInput,
                format("op {} has two schemas: {} and {}", entry->first, quoted(entry->second), quoted(text)),
                "write the schema file anew, from one installation of torch");
  }
  return {};
}

Result<std::optional<OpId>> SchemaLibrary::resolve(std::string_view op_name, SchemaTable& table) const {
  if (std::optional<OpId> known = table.find(op_name)) return known;
  auto found = texts_.find(std::string(op_name));
  if (found == texts_.end()) return std::optional<OpId>();
  ARGOSY_TRY(OpId added, table.add(found->second));
  return std::optional<OpId>(added);
}

}  // namespace argosy
