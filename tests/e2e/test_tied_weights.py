"""Tied weights as checkpoints hold them: under one name, under several with equal values, or with values that differ. Exports
compute what transformers loads, with one capture for all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from exporter_tool import Exporter, llama_inputs, make_exporter
from safetensors.torch import load_file, save_file
from thorough import thorough

IN, OUT = "model.embed_tokens.weight", "lm_head.weight"
Tensors = dict[str, torch.Tensor]


def other(tensor: torch.Tensor) -> torch.Tensor:
    return torch.randn(tensor.shape, generator=torch.Generator().manual_seed(7)) * 0.1


#: What is done to a checkpoint that holds the embeddings alone.
LLAMAS: dict[str, Callable[[Tensors], Tensors]] = {
    "embeddings only": lambda tensors: tensors,
    "head only": lambda tensors: {OUT if name == IN else name: tensor for name, tensor in tensors.items()},
    "equal": lambda tensors: {**tensors, OUT: tensors[IN].clone()},
    "different": lambda tensors: {**tensors, OUT: other(tensors[IN])},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tied")


@pytest.fixture(scope="module")
def llamas(folder: Path) -> dict[str, Path]:
    """A checkpoint of each kind; all have one configuration."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=96,
        max_position_embeddings=64, tie_word_embeddings=True, initializer_range=0.2, pad_token_id=0,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    found = {}
    for kind, change in LLAMAS.items():
        found[kind] = folder / kind.replace(" ", "-")
        model.save_pretrained(found[kind])
        file = found[kind] / "model.safetensors"
        save_file(change(load_file(file)), file, {"format": "pt"})
    return found


def eager(model: Path, cls: Any = transformers.AutoModelForCausalLM) -> torch.nn.Module:
    return cls.from_pretrained(model, dtype=torch.float32).eval()


def run_pt2(file: Path, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.export.load(file).module()(**inputs)["logits"]


def run_onnx(file: Path, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    by_name = {re.sub(r"^past_key_values_(\d+)_", r"past_key_values.\1.", each): value for each, value in inputs.items()}
    wanted = {each.name for each in session.get_inputs()}
    given = {name: value.numpy() for name, value in by_name.items() if name in wanted}
    return torch.from_numpy(session.run(["logits"], given)[0])


def run_pte(file: Path, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    portable = pytest.importorskip("executorch.extension.pybindings.portable_lib", reason="the runtime of .pte files")
    tokens = inputs["input_ids"]
    return portable._load_for_executorch(str(file)).run_method("forward", (tokens, torch.arange(tokens.shape[1])))[0]


BACKENDS: dict[str, tuple[str, Callable[..., torch.Tensor], tuple[str, ...]]] = {
    "pt2": (".pt2", run_pt2, ()),
    "onnx": (".onnx", run_onnx, ()),
    "executorch": (".pte", run_pte, ("--task", "text-generation", "--all-logits", "--no-custom-sdpa", "--no-custom-kv-cache")),
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_decoder_computes_what_transformers_loads(
    backend: str, folder: Path, llamas: dict[str, Path], tmp_path: Path
) -> None:
    ending, run, flags = BACKENDS[backend]
    exporter = make_exporter(folder, backend)
    tokens = torch.randint(3, 96, (1, 7), generator=torch.Generator().manual_seed(1))
    sizes = {}
    for kind, model in llamas.items():
        file = tmp_path / f"{model.name}{ending}"
        said = exporter.export(model, file, *flags)
        reference = eager(model)
        with torch.no_grad():
            expected = reference(tokens).logits
            found = run(file, llama_inputs(reference.config, tokens))
        assert (found - expected).abs().max() <= 1e-4 * expected.abs().max(), kind
        is_apart = f"ties {IN} and {OUT}, but the checkpoint holds both and they differ" in said
        assert is_apart == (kind == "different"), said
        sizes[kind] = sum(each.stat().st_size for each in tmp_path.glob(f"{model.name}{ending}*"))
    # equal ones are written once, as if the checkpoint held one
    table = 96 * 32 * 4
    assert abs(sizes["equal"] - sizes["embeddings only"]) < table / 2
    if backend != "executorch":  # which has an embedding and a packed layer of the same values twice, whatever they are
        assert sizes["different"] > sizes["equal"] + table / 2


def encoder_decoder(architecture: str) -> tuple[torch.nn.Module, str]:
    """A small model, and the name under which it saves what encoder, decoder and head share."""
    torch.manual_seed(0)
    if architecture == "t5":
        config = transformers.T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=96,
                                       decoder_start_token_id=0)  # fmt: skip
        return transformers.T5ForConditionalGeneration(config).eval(), "shared.weight"
    config = transformers.BartConfig(d_model=32, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=48, decoder_ffn_dim=48,
                                     encoder_attention_heads=4, decoder_attention_heads=4, vocab_size=96,
                                     max_position_embeddings=64)  # fmt: skip
    return transformers.BartForConditionalGeneration(config).eval(), "model.shared.weight"


@pytest.mark.parametrize(("architecture", "backend"), [("t5", "onnx"), thorough(("t5", "executorch")), thorough(("bart", "pt2"))])
def test_encoder_and_decoder_compute_what_transformers_loads(
    architecture: str, backend: str, folder: Path, tmp_path: Path
) -> None:
    model, shared = encoder_decoder(architecture)
    prefix = shared.removesuffix("shared.weight")
    exporter = make_exporter(folder, backend)
    changes: dict[str, Callable[[Tensors], Tensors]] = {
        "once": lambda tensors: tensors,
        "head": lambda tensors: {**tensors, OUT: other(tensors[shared])},
        "encoder": lambda tensors: {**tensors, f"{prefix}encoder.embed_tokens.weight": other(tensors[shared])},
    }
    for kind, change in changes.items():
        place = tmp_path / kind
        model.save_pretrained(place)
        tensors = load_file(place / "model.safetensors")
        tensors = {name: tensor for name, tensor in tensors.items() if tensor.shape != (96, 32) or name == shared}
        assert shared in tensors
        save_file(change(tensors), place / "model.safetensors", {"format": "pt"})
        output = tmp_path / f"{kind}.out"
        said = exporter.export(place, "-o", output)
        assert ("they differ" in said) == (kind == "head" or kind == "encoder"), said
        # every component on the checkpoint's own weights, beside eager's
        exporter.run("check", output, "--against", place)


def test_a_checkpoint_is_attached_by_name_without_a_plan(folder: Path, llamas: dict[str, Path], tmp_path: Path) -> None:
    exporter: Exporter = make_exporter(folder, "pt2")
    exporter.run("capture", "--model", llamas["equal"], "-o", tmp_path / "m.capture")
    for kind in ("head only", "different"):
        _, said = exporter.run(
            "opt", tmp_path / "m.capture", "--checkpoint", llamas[kind], "-o", tmp_path / f"{kind}.pt2"
        )
        state = torch.export.pt2_archive._package.load_pt2(str(tmp_path / f"{kind}.pt2")).exported_programs["decode"].state_dict
        expected = eager(llamas[kind]).state_dict()
        for name in (IN, OUT):
            torch.testing.assert_close(state[name], expected[name], rtol=0, atol=0)
