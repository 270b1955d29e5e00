#include "inspect/report_json.h"
#include "io/json.h"

namespace argosy {
namespace {

void write_counts(JsonWriter& writer, std::string_view key, std::string_view name, const std::vector<OpCount>& counts) {
  writer.key(key).begin_array();
  for (const OpCount& each : counts) {
    writer.begin_object().key(name).value(each.op).key("count").value(each.count).end_object();
  }
  writer.end_array();
}

void write_values(JsonWriter& writer, std::string_view key, const executorch::Method& method,
                  const std::vector<executorch::ValueIndex>& values) {
  writer.key(key).begin_array();
  for (executorch::ValueIndex index : values) {
    const executorch::Value& value = method.values[static_cast<size_t>(index)];
    writer.begin_object();
    if (const auto* tensor = std::get_if<executorch::Tensor>(&value)) {
      writer.key("dtype").value(to_text(tensor->dtype)).key("shape").begin_array();
      for (int32_t size : tensor->sizes) writer.value(size);
      writer.end_array().key("is_dynamic").value(tensor->is_dynamic);
    } else {
      writer.key("value").value(value_text(method, index));
    }
    writer.end_object();
  }
  writer.end_array();
}

void write_method(JsonWriter& writer, const executorch::Method& method, const PteMethodReport& report) {
  writer.begin_object().key("name").value(method.name);
  write_values(writer, "inputs", method, method.inputs);
  write_values(writer, "outputs", method, method.outputs);
  writer.key("instructions").value(uint64_t{method.instructions.size()});
  write_counts(writer, "kernels", "kernel", report.kernels);
  writer.key("delegate_calls").value(report.delegate_calls).key("backends").begin_array();
  for (const BackendReport& each : report.backends) {
    writer.begin_object().key("backend").value(each.backend).key("delegates").value(each.delegates);
    writer.key("nodes").value(each.nodes).key("payload_bytes").value(each.payload_bytes);
    write_counts(writer, "kinds", "node", each.kinds);
    writer.end_object();
  }
  writer.end_array().key("arenas").begin_array();
  for (uint64_t bytes : method.arenas) writer.value(bytes);
  writer.end_array().key("peak_bytes").value(report.peak_bytes);
  uint64_t states = 0;
  for (const executorch::Value& value : method.values) {
    const auto* tensor = std::get_if<executorch::Tensor>(&value);
    if (tensor && tensor->storage == executorch::Storage::kState) ++states;
  }
  writer.key("states").value(states).end_object();
}

}  // namespace

std::string pte_json(const std::string& path, const PteReport& report) {
  const executorch::ProgramFile& file = report.file;
  JsonWriter writer;
  writer.begin_object().key("path").value(path).key("kind").value("executorch").key("bytes").value(file.bytes);
  writer.key("flatbuffer_bytes").value(file.flatbuffer_bytes).key("data_bytes").value(file.data_bytes);
  writer.key("constant_bytes").value(file.constant_bytes).key("methods").begin_array();
  for (size_t i = 0; i < file.methods.size(); ++i) write_method(writer, file.methods[i], report.methods[i]);
  writer.end_array().key("data").begin_array();
  for (const executorch::StoredData& each : file.data) {
    writer.begin_object().key("key").value(each.key).key("bytes").value(each.bytes).end_object();
  }
  writer.end_array().end_object();
  return writer.take() + "\n";
}

}  // namespace argosy
