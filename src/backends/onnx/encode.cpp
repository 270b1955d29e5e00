#include "backends/onnx/encode.h"

#include <map>
#include <protozero/pbf_writer.hpp>

#include "argosy/version.h"
#include "base/check.h"
#include "base/text.h"
#include "io/onnx/onnx_fields.h"

namespace argosy::onnx {
namespace {

using protozero::pbf_writer;
namespace field = onnx_field;

constexpr size_t kEncodeScratch = size_t{1} << 20;
constexpr std::string_view kProducer = "argosy";
// Of domains other than ONNX's own: what onnxruntime's contrib ops and our readers know.
constexpr int64_t kForeignDomainVersion = 1;

void add_text(pbf_writer& writer, uint32_t number, std::string_view text) {
  writer.add_string(number, text.data(), text.size());
}

void add_entry(pbf_writer& parent, uint32_t number, std::string_view key, std::string_view value) {
  pbf_writer entry(parent, number);
  add_text(entry, field::StringStringEntryProto_key, key);
  add_text(entry, field::StringStringEntryProto_value, value);
}

Result<std::string> contents(const TensorSource& tensor) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(tensor.bytes()));
  ARGOSY_TRY_STATUS(tensor.stream_to(
      [&](std::span<const std::byte> block) -> Status {
        bytes.append(reinterpret_cast<const char*>(block.data()), block.size());
        return {};
      },
      kEncodeScratch));
  return bytes;
}

Result<int32_t> data_type_of(DType dtype, const std::string& name) {
  if (auto number = onnx_data_type(dtype)) return *number;
  return fail(ErrorCode::kUnsupportedFeature, format("{} is of {}, which ONNX lacks", quoted(name), to_text(dtype)));
}

class Encoder {
 public:
  Encoder(const Model& model, std::span<const TensorPlace> places) : model_(model), places_(places) {
    ARGOSY_CHECK(places.size() == model.initializers.size(), "another number of places than initializers");
  }

  Result<EncodedModel> run() {
    const Graph& graph = model_.graphs[0];
    std::string body;  // of the graph
    {
      pbf_writer writer(body);
      ARGOSY_TRY_STATUS(add_nodes(writer, graph));
      for (size_t i = 0; i < places_.size(); ++i) {
        ARGOSY_TRY_STATUS(add_initializer(writer, body, model_.initializers[i], places_[i]));
      }
      ARGOSY_TRY_STATUS(add_interface(writer, graph));
    }
    uint64_t graph_size = body.size();
    for (const EncodedModel::Gap& gap : gaps_) graph_size += static_cast<uint64_t>(gap.tensor->bytes());
    if (graph_size > kMaxModelBytes) return too_large(graph_size);

    EncodedModel encoded;
    {
      pbf_writer writer(encoded.bytes);
      writer.add_int64(field::ModelProto_ir_version, model_.ir_version);
      add_text(writer, field::ModelProto_producer_name, kProducer);
      add_text(writer, field::ModelProto_producer_version, version());
    }
    begin_bytes(encoded.bytes, field::ModelProto_graph, graph_size);
    size_t start = encoded.bytes.size();
    encoded.bytes += body;
    encoded.gaps = std::move(gaps_);
    for (EncodedModel::Gap& gap : encoded.gaps) gap.before += start;
    {
      pbf_writer writer(encoded.bytes);
      add_opset(writer, "", model_.opset);
      for (const auto& [domain, version] : foreign_domains_) add_opset(writer, domain, version);
      for (const auto& [key, value] : model_.metadata) add_entry(writer, field::ModelProto_metadata_props, key, value);
    }
    if (encoded.size() > kMaxModelBytes) return too_large(encoded.size());
    return encoded;
  }

 private:
  static tl::unexpected<Error> too_large(uint64_t size) {
    return fail(ErrorCode::kInvalidInput,
                format("the model would be a file of {}, and protobuf allows less than {}", format_bytes(size),
                       format_bytes(kMaxModelBytes + 1)),
                "keep the weights in a file beside it (--weights copy or link, external_data in Python)");
  }

  static void add_opset(pbf_writer& writer, std::string_view domain, int64_t version) {
    pbf_writer opset(writer, field::ModelProto_opset_import);
    add_text(opset, field::OperatorSetIdProto_domain, domain);
    opset.add_int64(field::OperatorSetIdProto_version, version);
  }

  /// The head of a field whose bytes follow.
  static void begin_bytes(std::string& out, uint32_t number, uint64_t size) {
    uint64_t tag = (uint64_t{number} << 3) | static_cast<uint64_t>(protozero::pbf_wire_type::length_delimited);
    protozero::write_varint(std::back_inserter(out), tag);
    protozero::write_varint(std::back_inserter(out), size);
  }

  Status add_nodes(pbf_writer& writer, const Graph& graph) {
    for (const Node& node : graph.nodes) ARGOSY_TRY_STATUS(add_node(writer, node));
    add_text(writer, field::GraphProto_name, graph.name);
    return {};
  }

  Status add_interface(pbf_writer& writer, const Graph& graph) {
    for (Ref ref : graph.inputs) ARGOSY_TRY_STATUS(add_value(writer, field::GraphProto_input, ref));
    for (Ref ref : graph.outputs) ARGOSY_TRY_STATUS(add_value(writer, field::GraphProto_output, ref));
    return {};
  }

  Status add_node(pbf_writer& parent, const Node& node) {
    pbf_writer writer(parent, field::GraphProto_node);
    for (Ref ref : node.inputs)
      add_text(writer, field::NodeProto_input, ref.is_valid() ? model_[ref].name : std::string_view());
    for (Ref ref : node.outputs)
      add_text(writer, field::NodeProto_output, ref.is_valid() ? model_[ref].name : std::string_view());
    add_text(writer, field::NodeProto_name, node.name);
    add_text(writer, field::NodeProto_op_type, node.op);
    for (const Attribute& attribute : node.attributes) ARGOSY_TRY_STATUS(add_attribute(writer, attribute));
    if (!node.domain.empty()) {
      add_text(writer, field::NodeProto_domain, node.domain);
      auto own = model_.domains.find(node.domain);
      foreign_domains_.try_emplace(node.domain, own == model_.domains.end() ? kForeignDomainVersion : own->second);
    }
    return {};
  }

  Status add_attribute(pbf_writer& parent, const Attribute& attribute) {
    pbf_writer writer(parent, field::NodeProto_attribute);
    add_text(writer, field::AttributeProto_name, attribute.name);
    int32_t type = 0;
    if (const auto* number = std::get_if<int64_t>(&attribute.value)) {
      writer.add_int64(field::AttributeProto_i, *number);
      type = field::AttributeProto_AttributeType_INT;
    } else if (const auto* real = std::get_if<float>(&attribute.value)) {
      writer.add_float(field::AttributeProto_f, *real);
      type = field::AttributeProto_AttributeType_FLOAT;
    } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
      add_text(writer, field::AttributeProto_s, *text);
      type = field::AttributeProto_AttributeType_STRING;
    } else if (const auto* numbers = std::get_if<std::vector<int64_t>>(&attribute.value)) {
      for (int64_t each : *numbers) writer.add_int64(field::AttributeProto_ints, each);
      type = field::AttributeProto_AttributeType_INTS;
    } else if (const auto* reals = std::get_if<std::vector<float>>(&attribute.value)) {
      for (float each : *reals) writer.add_float(field::AttributeProto_floats, each);
      type = field::AttributeProto_AttributeType_FLOATS;
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
      for (const std::string& each : *texts) add_text(writer, field::AttributeProto_strings, each);
      type = field::AttributeProto_AttributeType_STRINGS;
    } else if (const auto* tensor = std::get_if<TensorSourcePtr>(&attribute.value)) {
      pbf_writer inner(writer, field::AttributeProto_t);
      ARGOSY_TRY_STATUS(add_tensor_head(inner, **tensor, attribute.name));
      ARGOSY_TRY(std::string bytes, contents(**tensor));
      inner.add_bytes(field::TensorProto_raw_data, bytes);
      type = field::AttributeProto_AttributeType_TENSOR;
    } else {
      const Graph& graph = model_.graphs[std::get<uint32_t>(attribute.value)];
      pbf_writer inner(writer, field::AttributeProto_g);
      ARGOSY_TRY_STATUS(add_nodes(inner, graph));
      ARGOSY_TRY_STATUS(add_interface(inner, graph));
      type = field::AttributeProto_AttributeType_GRAPH;
    }
    writer.add_enum(field::AttributeProto_type, type);
    return {};
  }

  static Status add_tensor_head(pbf_writer& writer, const TensorSource& tensor, const std::string& name) {
    for (int64_t dim : tensor.shape()) writer.add_int64(field::TensorProto_dims, dim);
    ARGOSY_TRY(int32_t data_type, data_type_of(tensor.dtype(), name));
    writer.add_int32(field::TensorProto_data_type, data_type);
    add_text(writer, field::TensorProto_name, name);
    return {};
  }

  Status add_initializer(pbf_writer& parent, std::string& body, const Initializer& initializer,
                         const TensorPlace& place) {
    const std::string& name = model_[initializer.value].name;
    const TensorSource& tensor = *initializer.tensor;
    auto size = static_cast<uint64_t>(tensor.bytes());
    if (place.location.empty() && tensor.bytes() > kSmallTensorBytes) {
      // What follows the head goes into a gap, so that lengths are counted here and not by the writer.
      std::string head;
      pbf_writer writer(head);
      ARGOSY_TRY_STATUS(add_tensor_head(writer, tensor, name));
      begin_bytes(head, field::TensorProto_raw_data, size);
      begin_bytes(body, field::GraphProto_initializer, head.size() + size);
      body += head;
      gaps_.push_back({body.size(), initializer.tensor, name});
      return {};
    }
    pbf_writer writer(parent, field::GraphProto_initializer);
    ARGOSY_TRY_STATUS(add_tensor_head(writer, tensor, name));
    if (place.location.empty()) {
      ARGOSY_TRY(std::string bytes, contents(tensor));
      writer.add_bytes(field::TensorProto_raw_data, bytes);
      return {};
    }
    add_entry(writer, field::TensorProto_external_data, "location", place.location);
    add_entry(writer, field::TensorProto_external_data, "offset", format("{}", place.offset));
    add_entry(writer, field::TensorProto_external_data, "length", format("{}", size));
    writer.add_enum(field::TensorProto_data_location, field::TensorProto_DataLocation_EXTERNAL);
    return {};
  }

  Status add_value(pbf_writer& parent, uint32_t number, Ref ref) {
    const Value& value = model_[ref];
    pbf_writer writer(parent, number);
    add_text(writer, field::ValueInfoProto_name, value.name);
    if (!value.dtype) return {};
    ARGOSY_TRY(int32_t data_type, data_type_of(*value.dtype, value.name));
    pbf_writer type(writer, field::ValueInfoProto_type);
    if (!value.is_sequence) {
      add_tensor_type(type, value, data_type);
      return {};
    }
    pbf_writer sequence(type, field::TypeProto_sequence_type);
    pbf_writer element(sequence, field::TypeProto_Sequence_elem_type);
    add_tensor_type(element, value, data_type);
    return {};
  }

  static void add_tensor_type(pbf_writer& parent, const Value& value, int32_t data_type) {
    pbf_writer tensor(parent, field::TypeProto_tensor_type);
    tensor.add_int32(field::TypeProto_Tensor_elem_type, data_type);
    if (!value.shape) return;
    // Made as texts: pbf_writer leaves out a message without fields, and here that is a scalar or an unknown size.
    std::string shape;
    pbf_writer dims(shape);
    for (const Dim& dim : *value.shape) {
      std::string one;
      pbf_writer size(one);
      if (const auto* number = std::get_if<int64_t>(&dim)) {
        size.add_int64(field::TensorShapeProto_Dimension_dim_value, *number);
      } else if (const auto& name = std::get<std::string>(dim); !name.empty()) {
        add_text(size, field::TensorShapeProto_Dimension_dim_param, name);
      }
      dims.add_message(field::TensorShapeProto_dim, one);
    }
    tensor.add_message(field::TypeProto_Tensor_shape, shape);
  }

  const Model& model_;
  std::span<const TensorPlace> places_;
  std::map<std::string, int64_t> foreign_domains_;
  std::vector<EncodedModel::Gap> gaps_;  // counted from the beginning of the graph
};

}  // namespace

uint64_t EncodedModel::size() const {
  uint64_t size = bytes.size();
  for (const Gap& gap : gaps) size += static_cast<uint64_t>(gap.tensor->bytes());
  return size;
}

Result<EncodedModel> encode(const Model& model, std::span<const TensorPlace> places) {
  return Encoder(model, places).run();
}

Result<std::string> to_bytes(const EncodedModel& model) {
  std::string all;
  all.reserve(model.size());
  size_t from = 0;
  for (const EncodedModel::Gap& gap : model.gaps) {
    all.append(model.bytes, from, gap.before - from);
    from = gap.before;
    ARGOSY_TRY_STATUS(gap.tensor->stream_to(
        [&](std::span<const std::byte> block) -> Status {
          all.append(reinterpret_cast<const char*>(block.data()), block.size());
          return {};
        },
        size_t{16} << 20));
  }
  all.append(model.bytes, from);
  return all;
}

}  // namespace argosy::onnx
