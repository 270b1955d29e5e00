"""A draw as a folder that transformers loads: config.json and weights that make a difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .draw import HEADS, Draw


def make_checkpoint(draw: Draw, folder: Path) -> None:
    """Raises what transformers raises for fields that contradict each other."""
    import torch
    import transformers
    from argosy.capture.twin.weights import has_statistics, randomise, settle
    from .calls import model_inputs

    config = transformers.AutoConfig.for_model(draw.family, **draw.fields)
    model = getattr(transformers, HEADS[draw.head]).from_config(config, dtype=torch.float32).eval()
    randomise(model, seed=draw.seed * 100_003 + draw.index)
    if any(has_statistics(module) for module in model.modules()):
        settle(model, model_inputs(model, draw, rows=2))
    model.to(getattr(torch, draw.dtype)).save_pretrained(folder)
    if draw.kind == "decoder":
        _write_tokenizer(folder, draw.fields["vocab_size"])
    if draw.second_source:
        _add_head(model, folder, different=draw.second_source == "different")
    if draw.legacy_rope:
        _write_legacy_rope(folder / "config.json")


def _add_head(model: Any, folder: Path, *, different: bool) -> None:
    """Files of some trainers hold tied weights twice."""
    import torch
    from safetensors.torch import load_file, save_file

    weight = model.get_output_embeddings().weight
    name = next(name for name, each in model.named_parameters(remove_duplicate=False)
                if each is weight and each is not model.get_input_embeddings().weight or name.endswith("lm_head.weight"))  # fmt: skip
    tensors = load_file(folder / "model.safetensors")
    if name in tensors:
        return
    noise = torch.randn(weight.shape, generator=torch.Generator().manual_seed(7)).to(weight.dtype)
    tensors[name] = (0.1 * noise if different else weight.detach()).clone()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _write_tokenizer(folder: Path, size: int) -> None:
    """Bundles for runners want one; its tokens are letters."""
    names = {chr(i) if 33 <= i < 127 else f"<{i}>": i for i in range(size)}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "vocab": names, "merges": []}  # fmt: skip
    document = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
                "decoder": {"type": "Fuse"}, "model": model}  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


def _write_legacy_rope(path: Path) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))
    parameters = config.pop("rope_parameters")
    for name in ("rope_theta", "partial_rotary_factor"):
        if name in parameters:
            config[name] = parameters.pop(name)
    config["rope_scaling"] = None if parameters["rope_type"] == "default" else parameters
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")


def load(folder: Path, head: str, dtype: str) -> Any:
    """The eager model, as a user of transformers loads it."""
    import torch
    import transformers

    return getattr(transformers, HEADS[head]).from_pretrained(folder, dtype=getattr(torch, dtype), local_files_only=True).eval()
