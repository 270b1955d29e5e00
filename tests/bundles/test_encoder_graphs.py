"""Encoders for Optimum use ONNX Runtime's own attention, and give what PyTorch gives: padded batches, rows that are all padding."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
import transformers
from sweeps.exporting import export
from thorough import always

from argosy.check.full import check_bundle

ROOT = Path(__file__).parents[2]
ARGOSY = os.environ.get("ARGOSY_BIN", str(ROOT / "build/release/apps/cli/argosy"))

TEXT = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
IMAGE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "image_size": 16, "patch_size": 8}
T5 = {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_decoder_layers": 1, "num_heads": 4, "decoder_start_token_id": 0}
WHISPER = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_source_positions": 20, "vocab_size": 99, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip


def text_inputs() -> dict[str, torch.Tensor]:
    """The second row is padded, the third is nothing but padding."""
    ids = torch.randint(5, 99, (3, 7), generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([7, 4, 0])
    return {"input_ids": ids, "attention_mask": (torch.arange(7) < lengths[:, None]).long()}


def images() -> torch.Tensor:
    return torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def sounds() -> dict[str, torch.Tensor]:
    return {"input_features": torch.randn(2, 80, 40, generator=torch.Generator().manual_seed(0))}


@dataclass
class Encoder:
    config: transformers.PreTrainedConfig
    model: type
    inputs: Callable[[], dict[str, torch.Tensor]]
    output: str = "last_hidden_state"
    file: str = "model.onnx"
    part: Callable[[Any], torch.nn.Module] = lambda model: model
    ops: int = 2  # how many of ONNX Runtime's attention
    biases: bool = True  # projections have biases, which the op takes
    masks: bool = True


ENCODERS = {
    "bert": Encoder(transformers.BertConfig(**TEXT), transformers.BertModel, lambda: text_inputs() | {"token_type_ids": torch.zeros(3, 7).long()}),
    # Rotary embeddings, and every second layer sees a window of tokens only. One product gives queries, keys and values.
    "modernbert": Encoder(
        transformers.ModernBertConfig(**TEXT, global_attn_every_n_layers=2, local_attention=4, pad_token_id=0, cls_token_id=1, sep_token_id=2),
        transformers.ModernBertModel, text_inputs, biases=False,
    ),
    "vit": Encoder(transformers.ViTConfig(**IMAGE), transformers.ViTModel, lambda: {"pixel_values": images()}, masks=False),
    "clip": Encoder(
        transformers.CLIPConfig(text_config=TEXT | {"eos_token_id": 98, "max_position_embeddings": 16}, vision_config=IMAGE, projection_dim=24),
        transformers.CLIPModel, lambda: text_inputs() | {"pixel_values": images()}, output="text_embeds", ops=4,
    ),
    # A bias for each distance of tokens, in each head.
    "t5": Encoder(
        transformers.T5Config(**T5), transformers.T5ForConditionalGeneration, text_inputs,
        file="encoder_model.onnx", part=lambda model: model.encoder, biases=False,
    ),
    # Keys have no bias, and queries are multiplied with a number.
    "whisper": Encoder(
        transformers.WhisperConfig(**WHISPER), transformers.WhisperForConditionalGeneration, sounds,
        file="encoder_model.onnx", part=lambda model: model.model.encoder, masks=False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", always(("bert", "modernbert", "t5"), ENCODERS))
def test_attention_is_one_op_and_gives_what_torch_gives(name: str, tmp_path: Path) -> None:
    case = ENCODERS[name]
    torch.manual_seed(0)
    model = case.model(case.config).eval()
    with torch.no_grad():
        for weight in model.parameters():  # so that biases and norms matter
            weight.normal_(std=0.3)
    model.save_pretrained(tmp_path / "model")
    refusal, said = export(ARGOSY, "onnx", "--model", tmp_path / "model", "--for", "optimum", "-o", tmp_path / "bundle")
    assert refusal == "" and "agrees with PyTorch" in said, said
    graph = onnx.load(tmp_path / "bundle" / case.file, load_external_data=False).graph
    attention = [node for node in graph.node if node.op_type == "MultiHeadAttention"]
    ops = Counter(node.op_type for node in graph.node)
    assert len(attention) == case.ops, ops
    if case.ops:
        assert not ops["Softmax"]
        assert all((len(node.input) > 3 and node.input[3] != "") == case.biases for node in attention)
        if name != "clip":  # images have no mask, texts have
            assert all((len(node.input) > 5) == case.masks for node in attention)
    inputs = case.inputs()
    with torch.no_grad():
        expected = case.part(model)(**inputs)[case.output]
    session = onnxruntime.InferenceSession(tmp_path / "bundle" / case.file)
    found = torch.from_numpy(session.run([case.output], {key: value.numpy() for key, value in inputs.items()})[0])
    assert not expected.isnan().any()
    torch.testing.assert_close(found, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("engine", ("optimum", "transformersjs"))
def test_the_full_check_calls_the_graphs_of_a_bundle(engine: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, bundle = tmp_path / "model", tmp_path / "bundle"
    transformers.BertModel(ENCODERS["bert"].config).save_pretrained(model)
    refusal, said = export(ARGOSY, "onnx", "--model", model, "--for", engine, "--check", "full", "-o", bundle)
    assert refusal == "" and "this model with its own weights agrees with PyTorch: 2 component calls" in said, said
    data = next(bundle.rglob("*.onnx_data"))
    data.write_bytes(data.read_bytes().replace(b"\x3d", b"\x3e"))  # of floats, the bytes of their exponents
    checked = check_bundle(bundle, model)
    assert not checked.ok and any("is off by" in row.note for row in checked.rows)
