#include "inspect/report_json.h"

#include "inspect/graph_report.h"
#include "io/json.h"

namespace argosy {
namespace {

void write_shape(JsonWriter& writer, std::span<const int64_t> shape) {
  writer.begin_array();
  for (int64_t dim : shape) writer.value(dim);
  writer.end_array();
}

void write_texts(JsonWriter& writer, std::string_view name, const std::vector<std::string>& texts) {
  writer.key(name).begin_array();
  for (const std::string& text : texts) writer.value(text);
  writer.end_array();
}

void write_totals(JsonWriter& writer, const std::vector<DTypeTotal>& totals) {
  writer.key("totals").begin_array();
  uint64_t tensors = 0, bytes = 0;
  for (const DTypeTotal& total : totals) {
    writer.begin_object().key("dtype").value(to_text(total.dtype)).key("tensors").value(total.tensors);
    writer.key("elements").value(total.elements).key("bytes").value(total.bytes).end_object();
    tensors += total.tensors;
    bytes += total.bytes;
  }
  writer.end_array();
  writer.key("total_tensors").value(tensors).key("total_bytes").value(bytes);
}

void write_ops(JsonWriter& writer, const std::vector<OpCount>& ops) {
  writer.key("ops").begin_array();
  for (const OpCount& op : ops) writer.begin_object().key("op").value(op.op).key("count").value(op.count).end_object();
  writer.end_array();
}

void write_interface(JsonWriter& writer, std::string_view name, const std::vector<InterfaceEntry>& entries) {
  writer.key(name).begin_array();
  for (const InterfaceEntry& entry : entries) {
    writer.begin_object().key("name").value(entry.name);
    if (!entry.type) {
      writer.key("constant").value(entry.constant);
    } else {
      writer.key("dtype").value(entry.type->dtype);
      if (entry.type->is_tensor) {
        writer.key("dims").begin_array();
        for (const std::string& dim : entry.type->dims) writer.value(dim);
        writer.end_array();
      }
    }
    writer.end_object();
  }
  writer.end_array();
}

/// An end of a range that is open is null.
void write_bound(JsonWriter& writer, std::string_view name, int64_t bound, int64_t open) {
  writer.key(name);
  bound == open ? writer.null() : writer.value(bound);
}

void write_component(JsonWriter& writer, const ComponentReport& component) {
  writer.begin_object().key("name").value(component.name).key("nodes").value(component.nodes);
  writer.key("sub_graphs").value(component.sub_graphs);
  write_interface(writer, "inputs", component.inputs);
  write_interface(writer, "outputs", component.outputs);
  writer.key("dims").begin_array();
  for (const DimEntry& dim : component.dims) {
    writer.begin_object().key("name").value(dim.name).key("symbol").value(dim.symbol);
    write_bound(writer, "min", dim.range.min, SymRange::kNoMin);
    write_bound(writer, "max", dim.range.max, SymRange::kNoMax);
    writer.end_object();
  }
  writer.end_array().key("mutations").begin_array();
  for (const MutationEntry& mutation : component.mutations) {
    writer.begin_object().key("kind").value(mutation.kind).key("target").value(mutation.target).key("output");
    mutation.output ? writer.value(*mutation.output) : writer.null();
    writer.key("writes").value(mutation.writes).end_object();
  }
  writer.end_array().key("specialized").begin_array();
  for (const SpecializedDim& dim : component.specialized) {
    writer.begin_object().key("input").value(dim.input).key("dim").value(dim.dim).key("value").value(dim.value);
    writer.key("reason").value(dim.reason).end_object();
  }
  writer.end_array();
  write_texts(writer, "guards", component.guards);
  writer.key("guards_not_understood").value(component.guards_not_understood);
  write_ops(writer, component.ops);
  writer.end_object();
}

/// A dim is a number, a name, or null.
void write_onnx_values(JsonWriter& writer, std::string_view name, const std::vector<OnnxValue>& values) {
  writer.key(name).begin_array();
  for (const OnnxValue& value : values) {
    writer.begin_object().key("name").value(value.name).key("type").value(value.type).key("dims");
    if (!value.has_shape) writer.null();
    if (value.has_shape) {
      writer.begin_array();
      for (const OnnxDim& dim : value.shape) {
        dim.value ? writer.value(*dim.value) : dim.name.empty() ? writer.null() : writer.value(dim.name);
      }
      writer.end_array();
    }
    writer.end_object();
  }
  writer.end_array();
}

void write_onnx_tensors(JsonWriter& writer, const OnnxReport& report) {
  writer.key("tensors").begin_array();
  for (uint32_t index : report.by_size) {
    const OnnxInitializer& tensor = report.model.initializers[index];
    writer.begin_object().key("name").value(tensor.name).key("type").value(tensor.type).key("shape");
    write_shape(writer, tensor.shape);
    writer.key("bytes").value(tensor.bytes).key("location");
    tensor.location.empty() ? writer.null() : writer.value(tensor.location);
    writer.key("offset").value(tensor.offset).end_object();
  }
  writer.end_array();
}

}  // namespace

std::string checkpoint_json(const std::string& path, const CheckpointReport& report) {
  const Checkpoint& checkpoint = report.checkpoint;
  JsonWriter writer;
  writer.begin_object().key("path").value(path).key("kind").value("checkpoint");
  writer.key("files").begin_array();
  for (const auto& file : checkpoint.files()) writer.value(file.string());
  writer.end_array();
  write_totals(writer, report.totals);
  writer.key("metadata").begin_object();
  for (const auto& [key, value] : checkpoint.metadata()) writer.key(key).value(value);
  writer.end_object();
  writer.key("tensors").begin_array();
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    writer.begin_object().key("name").value(tensor.name).key("dtype").value(to_text(tensor.dtype)).key("shape");
    write_shape(writer, tensor.shape);
    writer.key("bytes").value(tensor.bytes).key("file").value(tensor.file).key("offset").value(tensor.offset);
    writer.end_object();
  }
  writer.end_array().end_object();
  return writer.take() + "\n";
}

std::string onnx_json(const std::string& path, const OnnxReport& report) {
  const OnnxModel& model = report.model;
  JsonWriter writer;
  writer.begin_object().key("path").value(path).key("kind").value("onnx").key("ir_version").value(model.ir_version);
  writer.key("producer").value(model.producer_name).key("producer_version").value(model.producer_version);
  writer.key("opsets").begin_object();
  for (const auto& [domain, version] : model.opset_imports) writer.key(domain).value(version);
  writer.end_object().key("metadata").begin_object();
  for (const auto& [key, value] : model.metadata_props) writer.key(key).value(value);
  writer.end_object().key("graph").value(model.graph_name);
  write_onnx_values(writer, "inputs", model.inputs);
  write_onnx_values(writer, "outputs", model.outputs);
  writer.key("ops").begin_array();
  for (const OnnxOpCount& op : model.ops) {
    writer.begin_object().key("op").value(onnx_op_name(op.domain, op.op_type));
    writer.key("count").value(op.count).end_object();
  }
  writer.end_array().key("functions").begin_array();
  for (const OnnxFunction& function : model.functions) {
    writer.begin_object().key("name").value(onnx_op_name(function.domain, function.name));
    writer.key("nodes").value(function.nodes).end_object();
  }
  writer.end_array();
  write_totals(writer, report.totals);
  write_onnx_tensors(writer, report);
  writer.key("external_files").begin_array();
  for (const OnnxExternalFile& file : model.external_files) {
    writer.begin_object().key("location").value(file.location).key("needed_bytes").value(file.needed_bytes);
    writer.key("available_bytes");
    file.available_bytes ? writer.value(*file.available_bytes) : writer.null();
    writer.end_object();
  }
  writer.end_array();
  write_texts(writer, "warnings", report.warnings);
  writer.end_object();
  return writer.take() + "\n";
}

std::string program_json(const std::string& path, InputKind kind, const ProgramReport& report) {
  JsonWriter writer;
  writer.begin_object().key("path").value(path).key("kind");
  writer.value(kind == InputKind::kPt2 ? "pt2" : kind == InputKind::kCapture ? "capture" : "ir");
  writer.key("components").begin_array();
  for (const ComponentReport& component : report.components) write_component(writer, component);
  writer.end_array();
  write_ops(writer, report.ops);
  write_totals(writer, report.totals);
  writer.key("tensors").begin_array();
  for (const TensorEntry& tensor : report.tensors) {
    writer.begin_object().key("name").value(tensor.name).key("kind").value(to_text(tensor.kind));
    writer.key("dtype").value(to_text(tensor.dtype)).key("shape");
    write_shape(writer, tensor.shape);
    writer.key("bytes").value(tensor.bytes).key("tied_to");
    tensor.tied_to.empty() ? writer.null() : writer.value(tensor.tied_to);
    writer.key("stored").value(tensor.is_stored).end_object();
  }
  writer.end_array();
  write_texts(writer, "warnings", report.warnings);
  writer.end_object();
  return writer.take() + "\n";
}

}  // namespace argosy
