"""`--inputs`: modules that no rule knows how to call are exported with sample inputs of the user's, and checked where that is possible."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest
from cli_tool import REPOSITORY
from warm import warm_python

import argosy
from argosy import ExportError

torch = pytest.importorskip("torch", reason="captures are made with it")
transformers = pytest.importorskip("transformers", reason="captures are made with it")
numpy = pytest.importorskip("numpy", reason="inputs are given in its files")

from argosy.capture.input_files import read_inputs  # noqa: E402
from argosy.capture.session import open_session  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

PROGRAM = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()

#: A model of nobody's: weighted sums over the nodes of a graph.
CODE = """
import torch
from transformers import PretrainedConfig, PreTrainedModel

class NodesConfig(PretrainedConfig):
    model_type = "own_nodes"
    def __init__(self, width=8, limit=0, **rest):
        self.width, self.limit = width, limit
        super().__init__(**rest)

class Nodes(PreTrainedModel):
    config_class = NodesConfig
    def __init__(self, config):
        super().__init__(config)
        self.mix = torch.nn.Linear(config.width, config.width)
        self.post_init()
    def _init_weights(self, module):
        pass
    def forward(self, nodes, edges, return_dict=None):
        if self.config.limit and not nodes.is_meta and not torch.compiler.is_exporting():
            raise ValueError("too many nodes")
        made = torch.relu(edges @ self.mix(nodes))
        return {"nodes": made, "whole": made.sum(1)}
"""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_BIN", str(PROGRAM))
    monkeypatch.setenv("ARGOSY_PYTHON", warm_python())
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY / "python"))
    monkeypatch.setenv("ARGOSY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def write_nodes(folder: Path, **settings: int) -> Path:
    folder.mkdir()
    (folder / "own_nodes.py").write_text(CODE)
    config = {"model_type": "own_nodes", "architectures": ["Nodes"], "width": 8, "dtype": "float32", **settings,
              "auto_map": {"AutoConfig": "own_nodes.NodesConfig", "AutoModel": "own_nodes.Nodes"}}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    weights = {"mix.weight": torch.randn(8, 8), "mix.bias": torch.randn(8)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def nodes(rows: int, count: int, width: int = 8) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(count)
    return {"nodes": torch.randn(rows, count, width, generator=generator), "edges": torch.rand(rows, count, count, generator=generator)}


def small_bert(**settings: int):
    return transformers.BertConfig(hidden_size=16, intermediate_size=32, num_attention_heads=2, num_hidden_layers=2, vocab_size=50,
                                   architectures=["BertModel"], **settings)  # fmt: skip


def eager(made: dict[str, torch.Tensor], folder: Path) -> torch.Tensor:
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    mixed = made["nodes"] @ weights["mix.weight"].T + weights["mix.bias"]
    return torch.relu(made["edges"] @ mixed)


def summary_of(folder: Path, output: Path, *arguments: str | Path) -> dict:
    """What the command says of an export."""
    command = [PROGRAM, "export", "pt2", "--model", folder, output, "--trust-remote-code", "--json", *arguments]
    return json.loads(subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True).stdout)


def test_a_module_of_nobodys_is_exported_checked_and_right_at_other_sizes(environment: None, tmp_path: Path) -> None:
    folder, said = write_nodes(tmp_path / "model"), []
    given = [nodes(2, 5), {name: value.numpy() for name, value in nodes(3, 7).items()}]
    output = argosy.export(folder, "pt2", tmp_path / "out.pt2", inputs=given, trust_remote_code=True, progress=said.append)
    program = torch.export.load(output).module()
    other = nodes(4, 11)
    difference = (program(**other)["nodes"] - eager(other, folder)).abs().max()
    assert difference < 1e-5
    assert any(each.get("stage") == "comparing" for each in said)
    # The same contents are the same capture, whatever the file is called; others are not.
    asked = {"trust_remote_code": True, "check": "off"}
    entries = [len(list((tmp_path / "cache/captures").iterdir()))]
    for inputs in (given, [nodes(2, 5), nodes(3, 6)]):
        argosy.export(folder, "pt2", tmp_path / "out.pt2", inputs=inputs, **asked)
        entries.append(len(list((tmp_path / "cache/captures").iterdir())))
    assert entries == [1, 1, 2]


def test_what_no_twin_takes_says_that_it_is_unchecked(environment: None, tmp_path: Path) -> None:
    folder = write_nodes(tmp_path / "model", limit=4)
    save_file(nodes(2, 5), tmp_path / "sample.safetensors")
    summary = summary_of(folder, tmp_path / "out.pt2", "--inputs", tmp_path / "sample.safetensors")
    assert summary["checks"][0]["kind"] == "none"
    assert "does not take the inputs (too many nodes)" in summary["checks"][0]["why"]
    assert "--check full" in summary["checks"][0]["why"]


def test_the_models_own_weights_are_compared_on_given_inputs(environment: None, tmp_path: Path) -> None:
    folder = write_nodes(tmp_path / "model")
    save_file(nodes(2, 5), tmp_path / "sample.safetensors")
    output = argosy.export(folder, "pt2", tmp_path / "out.pt2", inputs=tmp_path / "sample.safetensors", check="full",
                           trust_remote_code=True)  # fmt: skip
    assert output.is_file()


def test_a_single_set_varies_rows_and_texts_and_tells_what_is_fixed(tmp_path: Path) -> None:
    save_file({"input_ids": torch.ones(2, 5, dtype=torch.int64)}, tmp_path / "text.safetensors")
    text = open_session(small_bert(), inputs=[tmp_path / "text.safetensors"])
    assert text.dims["model"].names == {"input_ids": {0: "batch", 1: "sequence"}} and not text.components[0].fixed
    config = transformers.ViTConfig(hidden_size=16, intermediate_size=32, num_attention_heads=2, num_hidden_layers=2, image_size=32,
                                    patch_size=8, architectures=["ViTModel"])  # fmt: skip
    numpy.savez(tmp_path / "picture.npz", pixel_values=numpy.zeros((1, 3, 32, 32), numpy.float32))
    picture = open_session(config, inputs=[tmp_path / "picture.npz"])
    assert picture.dims["model"].names == {"pixel_values": {0: "batch"}}
    fixed = {(each["dim"], each["value"]) for each in picture.components[0].fixed}
    assert fixed == {(1, 3), (2, 32), (3, 32)} and "--inputs again" in picture.components[0].fixed[0]["reason"]


def test_the_set_that_is_traced_has_no_axis_of_one(tmp_path: Path) -> None:
    for number, (rows, tokens) in enumerate([(3, 5), (1, 90)]):
        save_file({"input_ids": torch.ones(rows, tokens, dtype=torch.int64)}, tmp_path / f"{number}.safetensors")
    session = open_session(small_bert(), inputs=[tmp_path / "0.safetensors", tmp_path / "1.safetensors"])
    component = session.components[0]
    assert component.symbols(component.shapes[component.traced_media]) == {"batch": 3, "sequence": 5}


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ([{"input_idz": torch.ones(1, 3)}], "'input_idz', which forward of BertModel does not take"),
        ([{"input_ids": torch.ones(1, 3)}, {"attention_mask": torch.ones(1, 3)}], "inputs of other names"),
        ([{"input_ids": torch.ones(1, 3)}, {"input_ids": torch.ones(3)}], "float32 of 1 dims, in"),
        ([{"input_ids": torch.ones(1, 3)}, {"input_ids": torch.ones(1, 3).long()}], "is int64 of 2 dims"),
        ([{"input_ids": torch.ones(1, 3)}] * 9, "9 files of inputs"),
    ],
    ids=["unknown-name", "other-names", "other-rank", "other-dtype", "too-many"],
)
def test_refused_sets(tmp_path: Path, sets: list[dict[str, torch.Tensor]], words: str) -> None:
    files = [tmp_path / f"{number}.safetensors" for number in range(len(sets))]
    for file, tensors in zip(files, sets, strict=True):
        save_file(tensors, file)
    with pytest.raises(ExportError, match=words):
        open_session(small_bert(), inputs=files)


def test_a_graph_for_prompts_is_not_made_of_given_inputs(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="--prefill asks for two"):
        open_session(small_bert(), prefill=True, inputs=[tmp_path / "any.npz"])


# ---- files -----------------------------------------------------------------------------------------------------------


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + data


def npz(**entries: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return file.getvalue()


def described(descr: str, shape: str) -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


def pickled() -> bytes:
    file = io.BytesIO()
    numpy.savez(file, x=numpy.array([object()], dtype=object))
    return file.getvalue()


def safetensors(header: str) -> bytes:
    return struct.pack("<Q", len(header)) + header.encode()


HOSTILE = {
    "pickle": (pickled(), "no number's"),
    "promises-more": (npz(**{"x.npy": npy(described("'<f4'", "(1099511627776,)"), b"abcd")}), "its header says 4398046511104"),
    "promises-less": (npz(**{"x.npy": npy(described("'<f4'", "(1,)"), b"abcdefgh")}), "has 8 bytes, its header says 4"),
    "negative": (npz(**{"x.npy": npy(described("'<f4'", "(-1,)"), b"")}), "its header says"),
    "a-call-for-a-header": (npz(**{"x.npy": npy("__import__('os').system('true')")}), "cannot be read as inputs"),
    "no-array": (npz(**{"readme.txt": b"hello"}), "no array"),
    "unknown-version": (npz(**{"x.npy": npy(described("'<f4'", "(1,)"), b"abcd", b"\x09\x00")}), "version"),
    "structures": (npz(**{"x.npy": npy(described("[('a', '<f4')]", "(1,)"), b"abcd")}), "no number's"),
    "empty": (npz(), "has 0 tensors"),
    "no-size": (npz(**{"x.npy": npy(described("'<f4'", "(0,)"))}), "none of them empty"),
    "no-zip": (b"hello", "cannot be read as inputs"),
    "bomb": (npz(**{"x.npy": npy(described("'<f4'", "(1,)")) + bytes((1 << 30) + 1)}), "too large once unpacked"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_archives(tmp_path: Path, kind: str) -> None:
    contents, words = HOSTILE[kind]
    (tmp_path / "x.npz").write_bytes(contents)
    with pytest.raises(ExportError, match=words):
        read_inputs(tmp_path / "x.npz")


@pytest.mark.parametrize(
    "header",
    ['{"x":{"dtype":"F32","shape":[4],"data_offsets":[0,99]}}', '{"x":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}}', "hello",
     '{"x":{"dtype":"I16","shape":[0],"data_offsets":[0,0]}}'],
)  # fmt: skip
def test_hostile_safetensors(tmp_path: Path, header: str) -> None:
    (tmp_path / "x.safetensors").write_bytes(safetensors(header))
    with pytest.raises(ExportError, match="cannot be read as inputs"):
        read_inputs(tmp_path / "x.safetensors")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="is neither"):
        read_inputs(tmp_path / "x.pt")
    with pytest.raises(ExportError, match="is no file"):
        read_inputs(tmp_path / "x.npz")


def test_both_kinds_of_files_hold_the_same(tmp_path: Path) -> None:
    made = {"a": numpy.arange(6, dtype=">i4").reshape(2, 3), "b": numpy.asfortranarray(numpy.ones((2, 3), numpy.float16))}
    numpy.savez_compressed(tmp_path / "x.npz", **made)
    save_file({name: torch.from_numpy(numpy.ascontiguousarray(value.astype(value.dtype.newbyteorder("=")))) for name, value in made.items()},
              tmp_path / "x.safetensors")  # fmt: skip
    one, other = read_inputs(tmp_path / "x.npz"), read_inputs(tmp_path / "x.safetensors")
    assert all(torch.equal(one[name], other[name]) and one[name].dtype == other[name].dtype for name in made)
