#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace argosy {

// What reader and writer of .pt2 archives (torch.export.save) share: names of entries below the archive's root folder,
// and the numbering of its JSON, which is not that of c10.

inline constexpr std::string_view kPt2FormatEntry = "archive_format";        // "pt2"
inline constexpr std::string_view kPt2VersionEntry = "archive_version";      // "0"
inline constexpr std::string_view kPt2ByteOrderEntry = "byteorder";          // "little"
inline constexpr std::string_view kPt2Models = "models/";                    // <model>.json
inline constexpr std::string_view kPt2Weights = "data/weights/";             // weight_N, <model>_weights_config.json
inline constexpr std::string_view kPt2Constants = "data/constants/";         // tensor_N, <model>_constants_config.json
inline constexpr std::string_view kPt2SampleInputs = "data/sample_inputs/";  // <model>.pt
inline constexpr std::string_view kPt2Extra = "extra/";                      // files of whoever wrote it

/// Major version of the graph JSON that is read and written; the minor one adds only what may be ignored.
inline constexpr int64_t kPt2SchemaMajor = 8;
inline constexpr int64_t kPt2SchemaMinor = 20;

// What torch needs to load a graph again and the IR has no place for: attributes of a component, texts that only the
// reader and the writer understand. JSON texts unless said otherwise.
inline constexpr std::string_view kPt2InSpec = "pt2.in_spec";    // torch's own text
inline constexpr std::string_view kPt2OutSpec = "pt2.out_spec";  // torch's own text
inline constexpr std::string_view kPt2ArgumentNames = "pt2.forward_arg_names";
inline constexpr std::string_view kPt2Verifiers = "pt2.verifiers";
inline constexpr std::string_view kPt2OpsetVersion = "pt2.opset_version";
inline constexpr std::string_view kPt2TorchVersion = "pt2.torch_version";  // plain
inline constexpr std::string_view kPt2NamedTuples = "pt2.treespec_namedtuple_fields";
inline constexpr std::string_view kPt2Metadata = "pt2.metadata";
inline constexpr std::string_view kPt2Ranges = "pt2.range_constraints";
inline constexpr std::string_view kPt2Hints = "pt2.symbol_hints";      // "s70=16 s72=2"
inline constexpr std::string_view kPt2FloatHints = "pt2.float_hints";  // {"<srepr>": 1.5}
inline constexpr std::string_view kPt2Device = "pt2.device";           // plain, if it is not "cpu"
inline constexpr std::string_view kPt2Frozen = "pt2.frozen";  // parameters without gradient, one a line; "*": all

/// ScalarType of the graph JSON; nullopt for numbers and types that it does not have.
std::optional<DType> dtype_from_pt2(int64_t number);
std::optional<int64_t> pt2_number(DType dtype);

}  // namespace argosy
