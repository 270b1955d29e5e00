#include "io/onnx/onnx_model.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <tuple>

#include "base/checked_math.h"
#include "base/text.h"
#include "io/names.h"
#include "io/onnx/onnx_fields.h"

namespace argosy {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
namespace field = onnx_field;

constexpr int kMaxNesting = 64;
// Two bytes of a hostile file make an item here; without a limit that would fill the memory.
constexpr size_t kMaxItems = size_t{1} << 20;
constexpr size_t kMaxRank = 1024;
constexpr size_t kMaxIntegers = 32;  // of a node

std::string element_text(int64_t data_type) {
  if (const OnnxElementType* type = onnx_element_type(data_type)) return type->text;
  return data_type == 0 ? "unknown" : format("type {}", data_type);
}

std::optional<DType> element_dtype(int64_t data_type) {
  const OnnxElementType* type = onnx_element_type(data_type);
  return type == nullptr ? std::nullopt : type->dtype;
}

/// Thrown inside this file only, like protozero's own exceptions, and turned into an Error at its border.
struct Malformed {
  std::string why;
};

/// What a field holds, if it is of that kind; a known number with another wire type is an unknown field to protobuf.
bool is_bytes(const pbf_reader& reader, uint32_t number) {
  return reader.tag() == number && reader.wire_type() == pbf_wire_type::length_delimited;
}
bool is_varint(const pbf_reader& reader, uint32_t number) {
  return reader.tag() == number && reader.wire_type() == pbf_wire_type::varint;
}

std::string text_of(pbf_reader& reader) {
  auto view = reader.get_view();
  std::string_view text(view.data(), view.size());
  if (!is_utf8(text)) throw Malformed{format("the text {} is not UTF-8", quoted(text, 40))};
  return std::string(text);
}

template <class T>
T& append(std::vector<T>& items) {
  if (items.size() >= kMaxItems) throw Malformed{format("it has more than {} items of one kind", kMaxItems)};
  return items.emplace_back();
}

class ModelParser {
 public:
  ModelParser(OnnxExternalData external_data, OnnxNodes nodes)
      : external_data_(external_data), keeps_nodes_(nodes == OnnxNodes::kRead) {}

  OnnxModel parse(std::string_view bytes) {
    bool has_graph = false;
    pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next()) {
      if (is_varint(reader, field::ModelProto_ir_version))
        model_.ir_version = reader.get_int64();
      else if (is_bytes(reader, field::ModelProto_producer_name))
        model_.producer_name = text_of(reader);
      else if (is_bytes(reader, field::ModelProto_producer_version))
        model_.producer_version = text_of(reader);
      else if (is_bytes(reader, field::ModelProto_opset_import))
        read_opset(reader.get_message());
      else if (is_bytes(reader, field::ModelProto_metadata_props))
        append(model_.metadata_props) = entry(reader.get_message());
      else if (is_bytes(reader, field::ModelProto_functions))
        read_function(reader.get_message());
      else if (is_bytes(reader, field::ModelProto_graph)) {
        if (has_graph) throw Malformed{"it has two graphs"};
        has_graph = true;
        read_graph(reader.get_message(), 0);
      } else
        reader.skip();
    }
    if (model_.ir_version < 1) throw Malformed{"it has no IR version"};
    if (!has_graph) throw Malformed{"it has no graph"};
    finish();
    return std::move(model_);
  }

 private:
  static std::pair<std::string, std::string> entry(pbf_reader reader) {
    std::pair<std::string, std::string> result;
    while (reader.next()) {
      if (is_bytes(reader, field::StringStringEntryProto_key))
        result.first = text_of(reader);
      else if (is_bytes(reader, field::StringStringEntryProto_value))
        result.second = text_of(reader);
      else
        reader.skip();
    }
    return result;
  }

  void read_opset(pbf_reader reader) {
    auto& opset = append(model_.opset_imports);
    while (reader.next()) {
      if (is_bytes(reader, field::OperatorSetIdProto_domain))
        opset.first = text_of(reader);
      else if (is_varint(reader, field::OperatorSetIdProto_version))
        opset.second = reader.get_int64();
      else
        reader.skip();
    }
  }

  void read_function(pbf_reader reader) {
    OnnxFunction& function = append(model_.functions);
    while (reader.next()) {
      if (is_bytes(reader, field::FunctionProto_name))
        function.name = text_of(reader);
      else if (is_bytes(reader, field::FunctionProto_domain))
        function.domain = text_of(reader);
      else {
        if (is_bytes(reader, field::FunctionProto_node)) ++function.nodes;
        reader.skip();
      }
    }
  }

  void read_graph(pbf_reader reader, int depth) {
    if (depth > kMaxNesting) throw Malformed{format("sub-graphs are nested more than {} levels deep", kMaxNesting)};
    while (reader.next()) {
      if (is_bytes(reader, field::GraphProto_node))
        read_node(reader.get_message(), depth);
      else if (is_bytes(reader, field::GraphProto_initializer))
        read_tensor(reader.get_message(), append(model_.initializers));
      else if (is_bytes(reader, field::GraphProto_sparse_initializer))
        read_sparse(reader.get_message());
      else if (depth == 0 && is_bytes(reader, field::GraphProto_name))
        model_.graph_name = text_of(reader);
      else if (depth == 0 && is_bytes(reader, field::GraphProto_input))
        read_value(reader.get_message(), append(model_.inputs));
      else if (depth == 0 && is_bytes(reader, field::GraphProto_output))
        read_value(reader.get_message(), append(model_.outputs));
      else
        reader.skip();
    }
  }

  void read_node(pbf_reader reader, int depth) {
    std::pair<std::string, std::string> op;  // domain, op_type
    OnnxNode node;
    std::vector<std::string> outputs;  // sub-graphs of the node do not know them
    while (reader.next()) {
      if (is_bytes(reader, field::NodeProto_domain))
        op.first = text_of(reader);
      else if (is_bytes(reader, field::NodeProto_op_type))
        op.second = text_of(reader);
      else if (is_bytes(reader, field::NodeProto_attribute))
        read_attribute(reader.get_message(), depth, node);
      else if (keeps_nodes_ && is_bytes(reader, field::NodeProto_name))
        node.name = text_of(reader);
      else if (keeps_nodes_ && is_bytes(reader, field::NodeProto_input))
        append(node.inputs) = numbers_.read(text_of(reader));
      else if (keeps_nodes_ && is_bytes(reader, field::NodeProto_output))
        append(outputs) = text_of(reader);
      else
        reader.skip();
    }
    if (op.first == "ai.onnx") op.first.clear();  // another way to write the default domain
    if (op.second.empty()) throw Malformed{"a node has no op_type"};
    if (keeps_nodes_) {
      for (const std::string& output : outputs) node.outputs.push_back(numbers_.given(output));
      node.op = numbers_.op(op.first, op.second);
      append(model_.graph.nodes) = std::move(node);
      if (model_.graph.values.size() > kMaxItems) throw Malformed{format("it has more than {} values", kMaxItems)};
    }
    ++ops_[std::move(op)];
    if (ops_.size() > kMaxItems) throw Malformed{format("it uses more than {} different ops", kMaxItems)};
  }

  void read_attribute(pbf_reader reader, int depth, OnnxNode& node) {
    std::string name;
    std::optional<int64_t> integer;
    while (reader.next()) {
      if (is_bytes(reader, field::AttributeProto_g) || is_bytes(reader, field::AttributeProto_graphs)) {
        numbers_.enter_sub_graph();
        read_graph(reader.get_message(), depth + 1);
        numbers_.leave_sub_graph();
      } else if (keeps_nodes_ && is_bytes(reader, field::AttributeProto_name)) {
        name = text_of(reader);
      } else if (keeps_nodes_ && is_varint(reader, field::AttributeProto_i)) {
        integer = reader.get_int64();
      } else if (is_bytes(reader, field::AttributeProto_t)) {
        OnnxInitializer constant;
        read_tensor(reader.get_message(), constant);
      } else
        reader.skip();
    }
    if (integer && node.integers.size() < kMaxIntegers) node.integers.emplace_back(std::move(name), *integer);
  }

  void read_value(pbf_reader reader, OnnxValue& value) {
    value.type = "unknown";
    while (reader.next()) {
      if (is_bytes(reader, field::ValueInfoProto_name))
        value.name = text_of(reader);
      else if (is_bytes(reader, field::ValueInfoProto_type))
        value.type = read_type(reader.get_message(), &value, 0);
      else
        reader.skip();
    }
  }

  /// The text of a type; the shape, if it is a tensor's and nobody else's element, goes to `value`.
  std::string read_type(pbf_reader reader, OnnxValue* value, int depth) {
    if (depth > kMaxNesting) throw Malformed{format("types are nested more than {} levels deep", kMaxNesting)};
    std::string text = "unknown";
    while (reader.next()) {
      if (is_bytes(reader, field::TypeProto_tensor_type)) {
        text = read_tensor_type(reader.get_message(), value);
      } else if (is_bytes(reader, field::TypeProto_sparse_tensor_type)) {
        text = format("sparse({})", read_tensor_type(reader.get_message(), value));
      } else if (is_bytes(reader, field::TypeProto_sequence_type)) {
        text = format("sequence({})", read_element(reader.get_message(), depth + 1));
      } else if (is_bytes(reader, field::TypeProto_optional_type)) {
        text = format("optional({})", read_element(reader.get_message(), depth + 1));
      } else {
        if (is_bytes(reader, field::TypeProto_map_type)) text = "map";
        if (is_bytes(reader, field::TypeProto_opaque_type)) text = "opaque";
        reader.skip();
      }
    }
    return text;
  }

  std::string read_element(pbf_reader reader, int depth) {
    static_assert(field::TypeProto_Sequence_elem_type == field::TypeProto_Optional_elem_type);
    std::string text = "unknown";
    while (reader.next()) {
      if (is_bytes(reader, field::TypeProto_Sequence_elem_type))
        text = read_type(reader.get_message(), nullptr, depth);
      else
        reader.skip();
    }
    return text;
  }

  std::string read_tensor_type(pbf_reader reader, OnnxValue* value) {
    int64_t data_type = 0;
    while (reader.next()) {
      if (is_varint(reader, field::TypeProto_Tensor_elem_type))
        data_type = reader.get_int32();
      else if (value != nullptr && is_bytes(reader, field::TypeProto_Tensor_shape))
        read_shape(reader.get_message(), *value);
      else
        reader.skip();
    }
    return element_text(data_type);
  }

  static void read_shape(pbf_reader reader, OnnxValue& value) {
    value.has_shape = true;
    while (reader.next()) {
      if (!is_bytes(reader, field::TensorShapeProto_dim)) {
        reader.skip();
        continue;
      }
      if (value.shape.size() >= kMaxRank)
        throw Malformed{format("{} has more than {} dims", quoted(value.name), kMaxRank)};
      OnnxDim& dim = value.shape.emplace_back();
      pbf_reader inner = reader.get_message();
      while (inner.next()) {
        if (is_varint(inner, field::TensorShapeProto_Dimension_dim_value))
          dim.value = inner.get_int64();
        else if (is_bytes(inner, field::TensorShapeProto_Dimension_dim_param))
          dim.name = text_of(inner);
        else
          inner.skip();
      }
    }
  }

  void read_sparse(pbf_reader reader) {
    while (reader.next()) {
      if (is_bytes(reader, field::SparseTensorProto_values) || is_bytes(reader, field::SparseTensorProto_indices)) {
        read_tensor(reader.get_message(), append(model_.initializers));
      } else
        reader.skip();
    }
  }

  void read_tensor(pbf_reader reader, OnnxInitializer& tensor) {
    int64_t data_type = 0;
    bool is_external = false;
    std::optional<uint64_t> raw_size;
    uint64_t string_bytes = 0;
    std::vector<std::pair<std::string, std::string>> external;
    auto add_dim = [&](int64_t dim) {
      if (tensor.shape.size() >= kMaxRank) throw Malformed{format("a tensor has more than {} dims", kMaxRank)};
      tensor.shape.push_back(dim);
    };
    while (reader.next()) {
      if (is_varint(reader, field::TensorProto_dims))
        add_dim(reader.get_int64());
      else if (is_bytes(reader, field::TensorProto_dims))
        for (int64_t dim : reader.get_packed_int64()) add_dim(dim);
      else if (is_varint(reader, field::TensorProto_data_type))
        data_type = reader.get_int32();
      else if (is_varint(reader, field::TensorProto_data_location))
        is_external = reader.get_int32() == 1;
      else if (is_bytes(reader, field::TensorProto_name))
        tensor.name = text_of(reader);
      else if (is_bytes(reader, field::TensorProto_raw_data))
        raw_size = reader.get_view().size();
      else if (is_bytes(reader, field::TensorProto_string_data))
        string_bytes += reader.get_view().size();
      else if (is_bytes(reader, field::TensorProto_external_data))
        append(external) = entry(reader.get_message());
      else
        reader.skip();
    }
    tensor.type = element_text(data_type);
    tensor.dtype = element_dtype(data_type);
    tensor.bytes = string_bytes;
    if (tensor.dtype) tensor.bytes = size_of(tensor);
    if (is_external) {
      read_external(external, tensor);
    } else if (raw_size && tensor.dtype && *raw_size != tensor.bytes) {
      throw Malformed{format("tensor {} takes {} bytes by its type and shape, but holds {}", quoted(tensor.name),
                             tensor.bytes, *raw_size)};
    }
  }

  /// Types below 8 bits are rounded up to whole bytes.
  static uint64_t size_of(const OnnxInitializer& tensor) {
    auto count = element_count(tensor.shape);
    auto bits = count ? checked_mul(*count, bits_of(*tensor.dtype)) : std::nullopt;
    if (!bits) throw Malformed{format("the shape of tensor {} is negative or overflows", quoted(tensor.name))};
    return (static_cast<uint64_t>(*bits) + 7) / 8;
  }

  void read_external(const std::vector<std::pair<std::string, std::string>>& entries, OnnxInitializer& tensor) {
    std::optional<uint64_t> length;
    for (const auto& [key, value] : entries) {
      if (key == "location") {
        tensor.location = value;
      } else if (key == "offset" || key == "length") {
        uint64_t number = 0;
        auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc() || end != value.data() + value.size()) {
          throw Malformed{
              format("the {} of the external data of tensor {} is {}", key, quoted(tensor.name), quoted(value))};
        }
        if (key == "offset")
          tensor.offset = number;
        else
          length = number;
      }
    }
    if (external_data_ == OnnxExternalData::kMustBeSound && !is_plain_relative_path(tensor.location)) {
      throw Malformed{
          format("the data of tensor {} is said to be in {}, which is not a plain path inside the model's "
                 "folder",
                 quoted(tensor.name), quoted(tensor.location))};
    }
    if (length && tensor.dtype && *length != tensor.bytes) {
      throw Malformed{format("tensor {} takes {} bytes by its type and shape, but {} in its external file",
                             quoted(tensor.name), tensor.bytes, *length)};
    }
    uint64_t end;
    if (__builtin_add_overflow(tensor.offset, length.value_or(tensor.bytes), &end)) {
      throw Malformed{format("the external data of tensor {} lies beyond all files", quoted(tensor.name))};
    }
    uint64_t& needed = external_[tensor.location];
    needed = std::max(needed, end);
  }

  void finish() {
    std::sort(model_.opset_imports.begin(), model_.opset_imports.end());
    std::sort(model_.metadata_props.begin(), model_.metadata_props.end());
    for (auto& [op, count] : ops_) model_.ops.push_back({op.first, op.second, count});
    std::sort(model_.ops.begin(), model_.ops.end(), [](const OnnxOpCount& a, const OnnxOpCount& b) {
      return std::tie(b.count, a.domain, a.op_type) < std::tie(a.count, b.domain, b.op_type);
    });
    for (auto& [location, needed] : external_) model_.external_files.push_back({location, needed, std::nullopt});
    if (!keeps_nodes_) return;
    for (const OnnxValue& input : model_.inputs) model_.graph.inputs.push_back(numbers_.read(input.name));
    for (const OnnxValue& output : model_.outputs) model_.graph.outputs.push_back(numbers_.read(output.name));
    for (const OnnxInitializer& each : model_.initializers)
      model_.graph.initializers.push_back(numbers_.read(each.name));
  }

  OnnxExternalData external_data_;
  bool keeps_nodes_;
  OnnxModel model_;
  OnnxNumbers numbers_{model_.graph};
  std::map<std::pair<std::string, std::string>, uint64_t> ops_;
  std::map<std::string, uint64_t> external_;
};

}  // namespace

Result<OnnxModel> parse_onnx_model(std::string_view bytes, std::string_view name, OnnxExternalData external,
                                   OnnxNodes nodes) {
  constexpr const char* kHint = "the file is damaged, truncated or not an ONNX model; get or write it again";
  try {
    return ModelParser(external, nodes).parse(bytes);
  } catch (const Malformed& problem) {
    return fail(ErrorCode::kCorruptFile, format("{} is not a usable ONNX model: {}", name, problem.why), kHint);
  } catch (const protozero::exception& problem) {
    return fail(ErrorCode::kCorruptFile,
                format("{} is not a usable ONNX model: its protobuf is malformed ({})", name, problem.what()), kHint);
  }
}

}  // namespace argosy
