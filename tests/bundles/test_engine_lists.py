"""What our tables say that engines know by name is what their installed versions know."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from node_modules import node_modules

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import engine_lists  # noqa: E402

#: Types of transformers.js' list whose layers are no decoder's.
ENCODERS = {"donut-swin", "voxtral_realtime_encoder"}


def table(file: str, name: str) -> str:
    """The rows of a table in a C++ file."""
    text = (ROOT / "src" / "engines" / file).read_text(encoding="utf-8")
    start = re.search(rf"\b{name}(\[\])? =", text)
    assert start, f"{file} has no table {name}"
    return text[start.end() : text.index(";", start.end())]


def texts(rows: str) -> list[str]:
    return re.findall(r'"([^"]*)"', rows)


def pairs(file: str, name: str) -> dict[str, str]:
    return dict(re.findall(r'\{"([^"]+)", "([^"]*)"\}', table(file, name)))


def words_by_key(file: str, name: str) -> dict[str, str]:
    """Rows of a key and words, which may be several texts: the key by each word."""
    found = {}
    for row in re.findall(r'\{("[^}]*")\}', table(file, name)):
        key, *words = texts(row)
        found.update({word: key for part in words for word in part.split()})
    return found


@pytest.fixture(scope="module")
def source() -> Path:
    """The sources of the installed transformers.js. tools/setup goes on without them where Node's registry is not reached."""
    modules = node_modules()
    if modules is None:
        pytest.skip("transformers.js is not installed; tools/setup installs it")
    return modules / "@huggingface" / "transformers" / "src"


def hybrids() -> set[str]:
    more = texts(table("transformersjs/lint_tables.cpp", "kMoreHybrid"))
    return {*pairs("transformersjs/model_types.cpp", "kHybrids"), *" ".join(more).split()}


@pytest.mark.parametrize("kind, own, more", [("decoder", "kDecoders", "kMoreDecoders"), ("seq2seq", "kSeq2SeqTypes", "kMoreSeq2Seq")])
def test_types_and_the_keys_of_their_layers(kind: str, own: str, more: str, source: Path) -> None:
    ours = {**pairs("transformersjs/model_types.cpp", own), **words_by_key("transformersjs/lint_tables.cpp", more)}
    theirs = {name: row["key"] for name, row in engine_lists.transformersjs_types(source).items() if row.get("kind") == kind}
    assert ours == {name: key for name, key in theirs.items() if name not in ENCODERS | hybrids()}


def test_types_whose_decoder_is_a_part(source: Path) -> None:
    theirs = {name: row["part"] for name, row in engine_lists.transformersjs_types(source).items() if "part" in row}
    ours = words_by_key("transformersjs/lint_tables.cpp", "kNested")
    assert ours == {name: part for name, part in theirs.items() if name not in hybrids()}


def test_types_with_other_states(source: Path) -> None:
    assert hybrids() == set(engine_lists.transformersjs_hybrids(source))


def test_names_of_files_by_dtype(source: Path) -> None:
    assert pairs("transformersjs/lint_tables.cpp", "kDataTypes") == engine_lists.transformersjs_suffixes(source)


def test_types_of_images_and_sounds_are_known(source: Path) -> None:
    known = {*engine_lists.transformersjs_types(source), *engine_lists.transformersjs_hybrids(source)}
    for name in ["kImageTextTypes", "kAudioTextTypes", "kImagePositions"]:
        assert set(texts(table("transformersjs/model_types.cpp", name))) <= known


def test_classes_are_there(source: Path) -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (source / "models").rglob("*.js"))
    rows = re.findall(r'\{"(\w+)", k\w+\}', table("transformersjs/lint_tables.cpp", "kClasses"))
    assert rows and [name for name in rows if not re.search(rf"\b{name}\b", code)] == []


def test_types_of_genai_are_in_its_library() -> None:
    names = engine_lists.genai_names()
    types = " ".join(texts(table("genai/lint_config.cpp", "kTypesByKind"))).split()
    assert types and [name for name in types if name not in names] == []


def test_a_type_that_the_engine_does_not_list_is_noticed(source: Path, tmp_path: Path) -> None:
    text = (source / "configs.js").read_text(encoding="utf-8")
    (tmp_path / "configs.js").write_text(text.replace("case 'gpt2':", "case 'gpt3':"), encoding="utf-8")
    types = engine_lists.transformersjs_types(tmp_path)
    assert "gpt2" not in types and types["gpt3"] == {"kind": "decoder", "key": "n_layer"}
