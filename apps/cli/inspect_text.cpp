#include <algorithm>

#include "base/text.h"
#include "inspect_format.h"
#include "table.h"

namespace argosy::cli {
namespace {

std::string shape_text(std::span<const int64_t> shape) {
  std::vector<std::string> dims;
  for (int64_t dim : shape) dims.push_back(std::to_string(dim));
  return format("[{}]", join(dims, ", "));
}

std::string type_text(const InterfaceEntry& entry) {
  if (!entry.type) return "= " + entry.constant;
  if (!entry.type->is_tensor) return entry.type->dtype;
  return format("{}[{}]", entry.type->dtype, join(entry.type->dims, ", "));
}

std::string range_text(const SymRange& range) {
  std::string min = range.min == SymRange::kNoMin ? "" : std::to_string(range.min);
  std::string max = range.max == SymRange::kNoMax ? "" : std::to_string(range.max);
  return min + ".." + max;
}

/// A heading, the table, and how many rows were left out of it.
std::string section(std::string_view heading, const Table& table, size_t shown, size_t all, int indent = 0) {
  if (table.is_empty()) return "";
  std::string margin(static_cast<size_t>(indent), ' ');
  std::string text = format("{}{}{}\n{}", margin, indent == 0 ? "\n" : "", heading, table.text());
  if (shown < all) text += format("{}  … {} more (--top 0 shows all)\n", margin, format_count(all - shown));
  return text;
}

std::string totals_section(const std::vector<DTypeTotal>& totals) {
  Table table("lrrr");
  if (!totals.empty()) table.add({"dtype", "tensors", "elements", "bytes"});
  for (const DTypeTotal& total : totals) {
    table.add({std::string(to_text(total.dtype)), format_count(total.tensors), format_count(total.elements),
               format_bytes(total.bytes)});
  }
  return section("totals", table, 0, 0);
}

uint64_t total_bytes(const std::vector<DTypeTotal>& totals) {
  uint64_t bytes = 0;
  for (const DTypeTotal& total : totals) bytes += total.bytes;
  return bytes;
}

std::string interface_section(std::string_view heading, const std::vector<InterfaceEntry>& entries, size_t top) {
  Table table("ll", 4);
  size_t shown = std::min(top, entries.size());
  for (size_t i = 0; i < shown; ++i) {
    table.add({entries[i].name.empty() ? format("({})", i) : entries[i].name, type_text(entries[i])});
  }
  return section(heading, table, shown, entries.size(), 2);
}

std::string mutation_text(const MutationEntry& mutation) {
  std::vector<std::string> ways;
  if (mutation.output) ways.push_back(format("returned as output {}", *mutation.output));
  if (mutation.writes > 0) ways.push_back(format("written in place by {}", count_of(mutation.writes, "node")));
  return join(ways, ", ");
}

std::string component_text(const ComponentReport& component, size_t top) {
  std::string text = format("\ncomponent {}: {}", component.name, count_of(component.nodes, "node"));
  if (component.sub_graphs > 0) text += format(", {}", count_of(component.sub_graphs, "sub-graph"));
  text += "\n";
  text += interface_section("inputs", component.inputs, top);
  text += interface_section("outputs", component.outputs, top);
  Table dims("lrl", 4);
  for (const DimEntry& dim : component.dims) {
    dims.add({dim.name, range_text(dim.range), dim.name == dim.symbol ? "" : format("({})", dim.symbol)});
  }
  text += section("dims", dims, 0, 0, 2);
  Table mutations("lll", 4);
  size_t shown = std::min(top, component.mutations.size());
  for (size_t i = 0; i < shown; ++i) {
    const MutationEntry& mutation = component.mutations[i];
    mutations.add({mutation.kind, mutation.target, mutation_text(mutation)});
  }
  text += section("mutations", mutations, shown, component.mutations.size(), 2);
  Table specialized("ll", 4);
  for (const SpecializedDim& dim : component.specialized) {
    specialized.add({format("{}, dim {} = {}", dim.input, dim.dim, dim.value), dim.reason});
  }
  text += section("specialised dims", specialized, 0, 0, 2);
  Table guards("l", 4);
  shown = std::min(top, component.guards.size());
  for (size_t i = 0; i < shown; ++i) guards.add({component.guards[i]});
  text += section("guards", guards, shown, component.guards.size(), 2);
  return text;
}

std::string tied_section(const ProgramReport& report) {
  Table table("lll");
  for (const TensorEntry& tensor : report.tensors) {
    if (!tensor.tied_to.empty()) table.add({tensor.name, "=", tensor.tied_to});
  }
  return section("tied weights", table, 0, 0);
}

std::string notes_of(const TensorEntry& tensor) {
  std::vector<std::string> notes;
  if (tensor.kind != WeightKind::kParameter) notes.emplace_back(to_text(tensor.kind));
  if (!tensor.tied_to.empty()) notes.emplace_back("tied");
  if (!tensor.is_stored) notes.emplace_back("shape only");
  return notes.empty() ? "" : format("({})", join(notes, ", "));
}

/// Dims without a size or a name read "?".
std::vector<InterfaceEntry> onnx_interface(const std::vector<OnnxValue>& values) {
  std::vector<InterfaceEntry> entries;
  for (const OnnxValue& value : values) {
    TypeText type{value.type, {}, value.has_shape};
    for (const OnnxDim& dim : value.shape) {
      type.dims.push_back(dim.value ? std::to_string(*dim.value) : dim.name.empty() ? "?" : dim.name);
    }
    entries.push_back({value.name, std::move(type), ""});
  }
  return entries;
}

}  // namespace

std::string checkpoint_text(const std::string& path, const CheckpointReport& report, size_t top) {
  const Checkpoint& checkpoint = report.checkpoint;
  size_t count = checkpoint.tensors().size();
  std::string text = format("{}: {}, {}, {}, {}\n", path, describe(InputKind::kCheckpoint),
                            count_of(checkpoint.files().size(), "file"), count_of(count, "tensor"),
                            format_bytes(total_bytes(report.totals)));
  text += totals_section(report.totals);
  Table table("rlll");
  for (uint32_t index : report.by_size) {
    const CheckpointTensor& tensor = checkpoint.tensors()[index];
    table.add({format_bytes(tensor.bytes), std::string(to_text(tensor.dtype)), shape_text(tensor.shape), tensor.name});
  }
  text += section("tensors by size", table, report.by_size.size(), count);
  Table metadata("ll");
  size_t shown = std::min(top, checkpoint.metadata().size());
  for (size_t i = 0; i < shown; ++i) {
    metadata.add({argosy::quoted(checkpoint.metadata()[i].first), argosy::quoted(checkpoint.metadata()[i].second)});
  }
  text += section("metadata", metadata, shown, checkpoint.metadata().size());
  return text;
}

std::string onnx_text(const std::string& path, const OnnxReport& report, size_t top) {
  const OnnxModel& model = report.model;
  uint64_t nodes = 0;
  for (const OnnxOpCount& op : model.ops) nodes += op.count;
  std::string text =
      format("{}: {}, {}, {}, {}\n", path, describe(InputKind::kOnnx), count_of(nodes, "node"),
             count_of(model.initializers.size(), "initializer"), format_bytes(total_bytes(report.totals)));
  Table facts("ll");
  facts.add({"IR version", std::to_string(model.ir_version)});
  for (const auto& [domain, version] : model.opset_imports) {
    facts.add({"opset", format("{} {}", domain.empty() ? "ai.onnx" : domain, version)});
  }
  if (!model.producer_name.empty())
    facts.add({"producer", argosy::quoted(model.producer_name + " " + model.producer_version)});
  text += "\n" + facts.text();
  text += "\n" + interface_section("inputs", onnx_interface(model.inputs), top);
  text += interface_section("outputs", onnx_interface(model.outputs), top);
  Table ops("rl");
  size_t shown = std::min(top, model.ops.size());
  for (size_t i = 0; i < shown; ++i) {
    ops.add({format_count(model.ops[i].count), onnx_op_name(model.ops[i].domain, model.ops[i].op_type)});
  }
  text += section("ops", ops, shown, model.ops.size());
  Table functions("rl");
  shown = std::min(top, model.functions.size());
  for (size_t i = 0; i < shown; ++i) {
    const OnnxFunction& function = model.functions[i];
    functions.add({count_of(function.nodes, "node"), onnx_op_name(function.domain, function.name)});
  }
  text += section("functions", functions, shown, model.functions.size());
  Table tensors("rllll");
  shown = std::min(top, report.by_size.size());
  for (size_t i = 0; i < shown; ++i) {
    const OnnxInitializer& tensor = model.initializers[report.by_size[i]];
    tensors.add({format_bytes(tensor.bytes), tensor.type, shape_text(tensor.shape), tensor.name,
                 tensor.location.empty() ? "" : format("(in {})", tensor.location)});
  }
  text += section("tensors by size", tensors, shown, report.by_size.size());
  text += totals_section(report.totals);
  Table files("lr");
  for (const OnnxExternalFile& file : model.external_files) {
    files.add({file.location, file.available_bytes ? format_bytes(*file.available_bytes) : "not there"});
  }
  text += section("external files", files, 0, 0);
  Table warnings("l");
  for (const std::string& warning : report.warnings) warnings.add({warning});
  return text + section("warnings", warnings, 0, 0);
}

std::string program_text(const std::string& path, InputKind kind, const ProgramReport& report, size_t top) {
  uint64_t nodes = 0;
  for (const ComponentReport& component : report.components) nodes += component.nodes;
  std::string text = format("{}: {}, {}, {}, {}, {}\n", path, describe(kind),
                            count_of(report.components.size(), "component"), count_of(nodes, "node"),
                            count_of(report.tensors.size(), "weight"), format_bytes(total_bytes(report.totals)));
  for (const ComponentReport& component : report.components) text += component_text(component, top);
  Table ops("rl");
  size_t shown = std::min(top, report.ops.size());
  for (size_t i = 0; i < shown; ++i) ops.add({format_count(report.ops[i].count), report.ops[i].op});
  text += section("ops", ops, shown, report.ops.size());
  text += tied_section(report);
  Table tensors("rllll");
  shown = std::min(top, report.tensors.size());
  for (size_t i = 0; i < shown; ++i) {
    const TensorEntry& tensor = report.tensors[i];
    tensors.add({format_bytes(tensor.bytes), std::string(to_text(tensor.dtype)), shape_text(tensor.shape), tensor.name,
                 notes_of(tensor)});
  }
  text += section("tensors by size", tensors, shown, report.tensors.size());
  text += totals_section(report.totals);
  Table warnings("l");
  for (const std::string& warning : report.warnings) warnings.add({warning});
  return text + section("warnings", warnings, 0, 0);
}

}  // namespace argosy::cli
