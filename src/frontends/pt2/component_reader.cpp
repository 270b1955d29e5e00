#include "frontends/pt2/component_reader.h"

#include <algorithm>

#include "base/text.h"

namespace argosy {
namespace {

constexpr uint32_t kMaxStorages = 1u << 30;
constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";

}  // namespace

std::string_view op_name_of_target(std::string_view target) {
  constexpr std::string_view kOps = "torch.ops.";
  return target.starts_with(kOps) ? target.substr(kOps.size()) : target;
}

ComponentReader::ComponentReader(Program& program, Component& component, const GraphJsonOptions& options,
                                 const std::map<std::string, SymRange, std::less<>>& ranges)
    : program_(program),
      component_(component),
      options_(options),
      types_(*component.symbols, ranges),
      locations_(program.locations) {}

Result<OpId> ComponentReader::find_op(const JsonField& node, std::string_view target) {
  auto found = ops_.find(target);
  if (found != ops_.end()) return found->second;
  ARGOSY_TRY(std::optional<OpId> op, options_.schemas->resolve(op_name_of_target(target), program_.schemas));
  if (!op) return node.error(ErrorCode::kUnsupportedOp, format("unknown op {}", quoted(target)));
  ops_.emplace(target, *op);
  return *op;
}

Status ComponentReader::collect_ops(const JsonField& graph, int depth, std::vector<UnknownOp>& unknown) {
  JsonField nodes = graph.member("nodes");
  int64_t index = 0;
  for (JsonView item : nodes.view().items()) {
    JsonField node = nodes.item(item, index++);
    std::optional<std::string_view> target = item.find("target").as_string();
    if (!target) continue;  // reported when the node is read
    if (target->starts_with(kHigherOrder) && depth < kMaxGraphDepth) {
      for (JsonView input : item.find("inputs").items()) {
        auto [tag, value] = input.find("arg").only_member();
        if (tag != "as_graph") continue;
        JsonField subgraph = node.child("graph", value.find("graph"));
        ARGOSY_TRY_STATUS(collect_ops(subgraph, depth + 1, unknown));
      }
    }
    if (ops_.contains(*target)) continue;
    ARGOSY_TRY(std::optional<OpId> op, options_.schemas->resolve(op_name_of_target(*target), program_.schemas));
    if (op) {
      ops_.emplace(*target, *op);
      continue;
    }
    auto known = std::ranges::find(unknown, *target, &UnknownOp::target);
    if (known == unknown.end()) {
      if (unknown.size() >= 1000) continue;  // enough to act on
      unknown.push_back({*target, 0, std::string(item.find("name").as_string().value_or("")),
                         locations_.read(item.find("metadata"))});
      known = unknown.end() - 1;
    }
    ++known->count;
  }
  return {};
}

Status ComponentReader::resolve_ops(const JsonField& graph) {
  std::vector<UnknownOp> unknown;
  ARGOSY_TRY_STATUS(collect_ops(graph, 0, unknown));
  if (unknown.empty()) return {};
  std::vector<Error> errors;
  for (const UnknownOp& op : unknown) {
    std::string more = op.count > 1 ? format(", used by {} nodes", op.count) : std::string();
    Error error(
        ErrorCode::kUnsupportedOp, format("no schema is known for op {}{}", op_name_of_target(op.target), more),
        "if a package registers it: python -m argosy.schemas --import PACKAGE; if torch is newer than the schema "
        "file: python -m argosy.schemas");
    std::optional<ModelLocation> where;
    if (op.location.is_valid()) where = program_.locations[op.location];
    error.in(format("node {} of component {}", quoted(op.node), quoted(component_.name)), std::move(where));
    errors.push_back(std::move(error));
  }
  if (options_.diagnostics != nullptr) {
    for (const Error& error : errors) options_.diagnostics->errors.push_back(error);
  }
  return fail(std::move(errors.front()));
}

Status ComponentReader::read_companion() {
  if (!options_.companion.is_valid()) return {};
  JsonField companion(options_.companion, "companion");
  JsonField count = companion.member("storage_count");
  ARGOSY_TRY(storage_count_, count.integer());
  if (storage_count_ < 0 || storage_count_ > kMaxStorages) return count.error("out of range");
  storages_.reserve(static_cast<uint32_t>(storage_count_));
  JsonField locations = companion.member("locations");
  ARGOSY_TRY_STATUS(locations.require_array());
  int64_t index = 0;
  for (JsonView item : locations.view().items()) {
    JsonField field = locations.item(item, index++);
    ModelLocation location;
    ARGOSY_TRY(std::string_view file, field.member("file").string());
    ARGOSY_TRY(std::string_view module_path, field.member("module").string());
    ARGOSY_TRY(std::string_view class_name, field.member("class").string());
    ARGOSY_TRY(int64_t line, field.member("line").integer());
    ARGOSY_TRY(int64_t call, field.member("call").integer());
    if (line < 0 || line > INT32_MAX || call < 0 || call > INT32_MAX) return field.error("a number is out of range");
    location.file = file;
    location.module_path = module_path;
    location.class_name = class_name;
    location.line = static_cast<int>(line);
    location.call_index = static_cast<int>(call);
    companion_locations_.push_back(program_.locations.intern(std::move(location)));
  }
  return {};
}

}  // namespace argosy
