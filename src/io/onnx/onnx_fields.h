#pragma once

#include <cstdint>
#include <optional>

#include "tensor/dtype.h"

// The numbers of ONNX's format. They never change within it; tests/e2e/test_onnx_fields.py compares each with the
// installed onnx package.

/// Field numbers of the messages that are read or written, named <Message>_<field> as in onnx.proto; numbers of enums,
/// int32_t, are named <Message>_<Enum>_<value>.
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

constexpr uint32_t NodeProto_input = 1;
constexpr uint32_t NodeProto_output = 2;
constexpr uint32_t NodeProto_name = 3;
constexpr uint32_t NodeProto_op_type = 4;
constexpr uint32_t NodeProto_attribute = 5;
constexpr uint32_t NodeProto_domain = 7;

constexpr uint32_t AttributeProto_name = 1;
constexpr uint32_t AttributeProto_f = 2;
constexpr uint32_t AttributeProto_i = 3;
constexpr uint32_t AttributeProto_s = 4;
constexpr uint32_t AttributeProto_t = 5;
constexpr uint32_t AttributeProto_g = 6;
constexpr uint32_t AttributeProto_floats = 7;
constexpr uint32_t AttributeProto_ints = 8;
constexpr uint32_t AttributeProto_strings = 9;
constexpr uint32_t AttributeProto_graphs = 11;
constexpr uint32_t AttributeProto_type = 20;
constexpr int32_t AttributeProto_AttributeType_FLOAT = 1;
constexpr int32_t AttributeProto_AttributeType_INT = 2;
constexpr int32_t AttributeProto_AttributeType_STRING = 3;
constexpr int32_t AttributeProto_AttributeType_TENSOR = 4;
constexpr int32_t AttributeProto_AttributeType_GRAPH = 5;
constexpr int32_t AttributeProto_AttributeType_FLOATS = 6;
constexpr int32_t AttributeProto_AttributeType_INTS = 7;
constexpr int32_t AttributeProto_AttributeType_STRINGS = 8;

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
constexpr int32_t TensorProto_DataLocation_EXTERNAL = 1;

constexpr uint32_t SparseTensorProto_values = 1;
constexpr uint32_t SparseTensorProto_indices = 2;

// NOLINTEND(readability-identifier-naming)
}  // namespace argosy::onnx_field

namespace argosy {

/// One value of TensorProto.DataType.
struct OnnxElementType {
  int32_t number;
  const char* name;  // ONNX's own
  const char* text;  // ours
  std::optional<DType> dtype;
};

constexpr OnnxElementType kOnnxElementTypes[] = {
    {1, "FLOAT", "f32", DType::kF32},
    {2, "UINT8", "u8", DType::kU8},
    {3, "INT8", "i8", DType::kI8},
    {4, "UINT16", "u16", DType::kU16},
    {5, "INT16", "i16", DType::kI16},
    {6, "INT32", "i32", DType::kI32},
    {7, "INT64", "i64", DType::kI64},
    {8, "STRING", "string", std::nullopt},
    {9, "BOOL", "bool", DType::kBool},
    {10, "FLOAT16", "f16", DType::kF16},
    {11, "DOUBLE", "f64", DType::kF64},
    {12, "UINT32", "u32", DType::kU32},
    {13, "UINT64", "u64", DType::kU64},
    {14, "COMPLEX64", "c64", DType::kC64},
    {15, "COMPLEX128", "c128", DType::kC128},
    {16, "BFLOAT16", "bf16", DType::kBF16},
    {17, "FLOAT8E4M3FN", "f8e4m3fn", DType::kF8E4M3FN},
    {18, "FLOAT8E4M3FNUZ", "f8e4m3fnuz", DType::kF8E4M3FNUZ},
    {19, "FLOAT8E5M2", "f8e5m2", DType::kF8E5M2},
    {20, "FLOAT8E5M2FNUZ", "f8e5m2fnuz", DType::kF8E5M2FNUZ},
    {21, "UINT4", "u4", DType::kU4},
    {22, "INT4", "i4", DType::kI4},
    {23, "FLOAT4E2M1", "f4e2m1", DType::kF4E2M1},
    {24, "FLOAT8E8M0", "f8e8m0fnu", DType::kF8E8M0FNU},
    {25, "UINT2", "u2", DType::kU2},
    {26, "INT2", "i2", DType::kI2},
    {27, "FLOAT6E2M3", "f6e2m3", DType::kF6E2M3},
    {28, "FLOAT6E3M2", "f6e3m2", DType::kF6E3M2},
};

/// The number of an element type; nullopt where ONNX has none.
constexpr std::optional<int32_t> onnx_data_type(DType dtype) {
  for (const OnnxElementType& type : kOnnxElementTypes) {
    if (type.dtype == dtype) return type.number;
  }
  return std::nullopt;
}

/// The element type of a number; null where it is of none that is known.
constexpr const OnnxElementType* onnx_element_type(int64_t number) {
  for (const OnnxElementType& type : kOnnxElementTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

}  // namespace argosy
