"""The field numbers in onnx_fields.h, and the element types of onnx_model.cpp, are those of the installed onnx package."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest

IO = Path(__file__).resolve().parents[2] / "src" / "io" / "onnx"
FIELDS = re.findall(r"constexpr uint32_t (\w+) = (\d+);", (IO / "onnx_fields.h").read_text())
# What C++ calls the element types, where that is not ONNX's own word in short.
NAMES = {
    "FLOAT": "f32", "DOUBLE": "f64", "FLOAT16": "f16", "BFLOAT16": "bf16", "COMPLEX64": "c64", "COMPLEX128": "c128",
    "BOOL": "bool", "STRING": "string", "FLOAT8E4M3FN": "f8e4m3fn", "FLOAT8E4M3FNUZ": "f8e4m3fnuz",
    "FLOAT8E5M2": "f8e5m2", "FLOAT8E5M2FNUZ": "f8e5m2fnuz", "FLOAT8E8M0": "f8e8m0fnu", "FLOAT4E2M1": "f4e2m1",
    "FLOAT6E2M3": "f6e2m3", "FLOAT6E3M2": "f6e3m2",
}


def message_and_field(name: str):
    """TypeProto_Tensor_elem_type: the longest run of words that is a message, then the field."""
    words = name.split("_")
    message, used = getattr(onnx, words[0]), 1
    while words[used][0].isupper():
        message, used = getattr(message, words[used]), used + 1
    return message, "_".join(words[used:])


def test_there_are_fields() -> None:
    assert len(FIELDS) > 40


@pytest.mark.parametrize(("name", "number"), FIELDS)
def test_field_number(name: str, number: str) -> None:
    message, field = message_and_field(name)
    assert message.DESCRIPTOR.fields_by_name[field].number == int(number)


def test_element_types() -> None:
    source = (IO / "onnx_model.cpp").read_text()
    table = source[source.index("kElementTypes[] = {") : source.index("};", source.index("kElementTypes[]"))]
    found = re.findall(r'\{"(\w+)", ', table)
    types = sorted((number, name) for name, number in onnx.TensorProto.DataType.items() if number > 0)
    expected = [NAMES.get(name, name.lower().replace("uint", "u").replace("int", "i")) for _, name in types]
    assert found == expected
