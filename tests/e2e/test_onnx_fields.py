"""The numbers in onnx_fields.h are those of the installed onnx package."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest

HEADER = (Path(__file__).resolve().parents[2] / "src" / "io" / "onnx" / "onnx_fields.h").read_text()
FIELDS = re.findall(r"constexpr uint32_t (\w+) = (\d+);", HEADER)
ENUMS = re.findall(r"constexpr int32_t (\w+) = (\d+);", HEADER)
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
    assert len(FIELDS) > 50
    assert len(ENUMS) > 8


@pytest.mark.parametrize(("name", "number"), FIELDS)
def test_field_number(name: str, number: str) -> None:
    message, field = message_and_field(name)
    assert message.DESCRIPTOR.fields_by_name[field].number == int(number)


@pytest.mark.parametrize(("name", "number"), ENUMS)
def test_number_of_enum(name: str, number: str) -> None:
    message, enum, value = name.split("_", 2)
    assert getattr(getattr(onnx, message), enum).Value(value) == int(number)


def test_element_types() -> None:
    found = re.findall(r'\{(\d+), "(\w+)", "(\w+)", ', HEADER)
    types = sorted((number, name) for name, number in onnx.TensorProto.DataType.items() if number > 0)
    expected = [
        (str(number), name, NAMES.get(name, name.lower().replace("uint", "u").replace("int", "i"))) for number, name in types
    ]
    assert found == expected
