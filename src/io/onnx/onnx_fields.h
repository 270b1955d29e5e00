#pragma once

#include <cstdint>

/// Field numbers of the ONNX messages that are read, named <Message>_<field> as in onnx.proto. They never change within
/// the format; tests/e2e/test_onnx_fields.py compares each with the installed onnx package.
namespace argosy::onnx_field {
// NOLINTBEGIN(readability-identifier-naming): the names are those of onnx.proto

constexpr uint32_t ModelProto_ir_version = 1;
constexpr uint32_t ModelProto_producer_name = 2;
constexpr uint32_t ModelProto_producer_version = 3;
constexpr uint32_t ModelProto_graph = 7;
constexpr uint32_t ModelProto_opset_import = 8;
constexpr uint32_t ModelProto_metadata_props = 14;
constexpr uint32_t ModelProto_functions = 25;

constexpr uint32_t OperatorSetIdProto_domain = 1;
constexpr uint32_t OperatorSetIdProto_version = 2;

constexpr uint32_t StringStringEntryProto_key = 1;
constexpr uint32_t StringStringEntryProto_value = 2;

constexpr uint32_t FunctionProto_name = 1;
constexpr uint32_t FunctionProto_node = 7;
constexpr uint32_t FunctionProto_domain = 10;

constexpr uint32_t GraphProto_node = 1;
constexpr uint32_t GraphProto_name = 2;
constexpr uint32_t GraphProto_initializer = 5;
constexpr uint32_t GraphProto_input = 11;
constexpr uint32_t GraphProto_output = 12;
constexpr uint32_t GraphProto_sparse_initializer = 15;

constexpr uint32_t NodeProto_op_type = 4;
constexpr uint32_t NodeProto_attribute = 5;
constexpr uint32_t NodeProto_domain = 7;

constexpr uint32_t AttributeProto_g = 6;
constexpr uint32_t AttributeProto_graphs = 11;

constexpr uint32_t ValueInfoProto_name = 1;
constexpr uint32_t ValueInfoProto_type = 2;

constexpr uint32_t TypeProto_tensor_type = 1;
constexpr uint32_t TypeProto_sequence_type = 4;
constexpr uint32_t TypeProto_map_type = 5;
constexpr uint32_t TypeProto_opaque_type = 7;
constexpr uint32_t TypeProto_sparse_tensor_type = 8;
constexpr uint32_t TypeProto_optional_type = 9;
constexpr uint32_t TypeProto_Tensor_elem_type = 1;
constexpr uint32_t TypeProto_Tensor_shape = 2;
constexpr uint32_t TypeProto_Sequence_elem_type = 1;
constexpr uint32_t TypeProto_Optional_elem_type = 1;
constexpr uint32_t TensorShapeProto_dim = 1;
constexpr uint32_t TensorShapeProto_Dimension_dim_value = 1;
constexpr uint32_t TensorShapeProto_Dimension_dim_param = 2;

constexpr uint32_t TensorProto_dims = 1;
constexpr uint32_t TensorProto_data_type = 2;
constexpr uint32_t TensorProto_string_data = 6;
constexpr uint32_t TensorProto_name = 8;
constexpr uint32_t TensorProto_raw_data = 9;
constexpr uint32_t TensorProto_external_data = 13;
constexpr uint32_t TensorProto_data_location = 14;

constexpr uint32_t SparseTensorProto_values = 1;
constexpr uint32_t SparseTensorProto_indices = 2;

// NOLINTEND(readability-identifier-naming)
}  // namespace argosy::onnx_field
