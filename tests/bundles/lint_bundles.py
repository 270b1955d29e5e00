"""Tiny bundles that lint has nothing to say about, for tests to spoil."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, LAYERS, HEADS, SIZE = 16, 2, 2, 4
HIDDEN = HEADS * SIZE
F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def value(name: str, dims: list, dtype: int = F32) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, dims)


def weight(name: str, shape: tuple, dtype=np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.linspace(-1, 1, int(np.prod(shape))).reshape(shape).astype(dtype), name)


def model(nodes: list, inputs: list, outputs: list, weights: list, opset: int = 22) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="tests")
    made.ir_version = 10
    return made


def decoder(
    batch: str = "batch_size", embeddings: bool = False, roles: tuple = ("",), merged: bool = False
) -> onnx.ModelProto:
    """Keys and values are the tokens' embeddings behind those of the past. `roles` are "" or "decoder." and "encoder."."""
    nodes, outputs, weights = (
        [],
        [value("logits", [batch, "sequence", VOCABULARY])],
        [weight("head", (HIDDEN, VOCABULARY))],
    )
    inputs = (
        [value("inputs_embeds", [batch, "sequence", HIDDEN])]
        if embeddings
        else [value("input_ids", [batch, "sequence"], I64)]
    )
    hidden = "inputs_embeds"
    if not embeddings:
        weights.append(weight("table", (VOCABULARY, HIDDEN)))
        nodes.append(helper.make_node("Gather", ["table", "input_ids"], ["hidden"]))
        hidden = "hidden"
    if merged:
        inputs += [
            value("encoder_hidden_states", [batch, "encoder_sequence", HIDDEN]),
            value("encoder_attention_mask", [batch, "encoder_sequence"], I64),
        ]
    else:
        inputs += [value("attention_mask", [batch, "total"], I64), value("position_ids", [batch, "sequence"], I64)]
    weights.append(numpy_helper.from_array(np.array([0, 0, HEADS, SIZE]), "split"))

    def state(source: str, made: str) -> None:
        nodes.append(helper.make_node("Reshape", [source, "split"], [made + "_split"]))
        nodes.append(helper.make_node("Transpose", [made + "_split"], [made], perm=[0, 2, 1, 3]))

    state(hidden, "new")
    if merged:
        state("encoder_hidden_states", "cross")
    for layer in range(LAYERS):
        for role in roles:
            for half in ("key", "value"):
                past, present = f"past_key_values.{layer}.{role}{half}", f"present.{layer}.{role}{half}"
                length = "encoder_past" if role == "encoder." else "past"
                inputs.append(value(past, [batch, HEADS, length, SIZE]))
                outputs.append(value(present, [batch, HEADS, length + "_and_new", SIZE]))
                nodes.append(
                    helper.make_node("Concat", [past, "cross" if role == "encoder." else "new"], [present], axis=2)
                )
    nodes.append(helper.make_node("MatMul", [hidden, "head"], ["logits"]))
    return model(nodes, inputs, outputs, weights)


def encoder(output: str = "last_hidden_state", pixels: bool = False) -> onnx.ModelProto:
    if pixels:
        nodes = [helper.make_node("MatMul", ["pixel_values", "w"], [output])]
        return model(
            nodes,
            [value("pixel_values", ["batch_size", 3])],
            [value(output, ["batch_size", HIDDEN])],
            [weight("w", (3, HIDDEN))],
        )
    nodes = [helper.make_node("Gather", ["w", "input_ids"], [output])]
    inputs = [value("input_ids", ["batch_size", "sequence"], I64)]
    return model(
        nodes, inputs, [value(output, ["batch_size", "sequence", HIDDEN])], [weight("w", (VOCABULARY, HIDDEN))]
    )


def merge_embedding() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Gather", ["w", "input_ids"], ["tokens"]),
        helper.make_node("Add", ["tokens", "image_features"], ["inputs_embeds"]),
    ]
    inputs = [value("input_ids", ["batch_size", "sequence"], I64), value("image_features", ["images", HIDDEN])]
    return model(
        nodes, inputs, [value("inputs_embeds", ["batch_size", "sequence", HIDDEN])], [weight("w", (VOCABULARY, HIDDEN))]
    )


def save(made: onnx.ModelProto, path: Path, data: str | list[str] = "") -> None:
    """With `data`, the weights go to these files beside it in turn."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [data] if isinstance(data, str) else data
    ends = dict.fromkeys(files, 0)
    if files[0]:
        for file in files:
            (path.parent / file).write_bytes(b"")
        large = [tensor for tensor in made.graph.initializer if tensor.data_type != I64]
        for number, tensor in enumerate(large):
            file = files[number % len(files)]
            with (path.parent / file).open("ab") as out:
                out.write(tensor.raw_data)
            move_out(tensor, file, ends[file])
            ends[file] += len(tensor.raw_data)
            tensor.ClearField("raw_data")
    path.write_bytes(made.SerializeToString())


def move_out(tensor: onnx.TensorProto, location: str, offset: int) -> None:
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in (("location", location), ("offset", str(offset)), ("length", str(len(tensor.raw_data)))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, text


def write_json(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=2))


def companions(folder: Path, **config) -> None:
    """config.json, generation_config.json and a tokenizer of a Llama."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "hidden_size": HIDDEN,
    }
    tokens = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    base = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY, **numbers, **tokens}
    write_json(folder / "config.json", {**base, **config})
    write_json(folder / "generation_config.json", tokens)
    words = ["<pad>", "<s>", "</s>", *(f"t{i}" for i in range(3, VOCABULARY))]
    added = [{"id": i, "content": words[i], "special": True} for i in range(3)]
    write_json(
        folder / "tokenizer.json",
        {
            "added_tokens": added,
            "model": {"type": "BPE", "vocab": {word: i for i, word in enumerate(words)}, "merges": []},
        },
    )
    write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"},
    )


def genai_config(**model_keys) -> dict:
    sizes = {
        "hidden_size": HIDDEN,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "head_size": SIZE,
    }
    section = {"filename": "model.onnx", **sizes, "session_options": {"log_id": "tests", "provider_options": []}}
    tokens = {"bos_token_id": 1, "eos_token_id": [2], "pad_token_id": 0}
    base = {"type": "decoder", "context_length": 64, "vocab_size": VOCABULARY, **tokens, "decoder": section}
    return {"model": {**base, **model_keys}, "search": {"max_length": 64, "past_present_share_buffer": False}}


def genai(folder: Path) -> None:
    companions(folder)
    save(decoder(), folder / "model.onnx", "model.onnx.data")
    write_json(folder / "genai_config.json", genai_config())


def genai_vision(folder: Path) -> None:
    companions(folder)
    save(decoder(embeddings=True), folder / "model.onnx")
    save(encoder("image_features", pixels=True), folder / "vision.onnx")
    save(merge_embedding(), folder / "embedding.onnx")
    parts = {"vision": {"filename": "vision.onnx"}, "embedding": {"filename": "embedding.onnx"}}
    write_json(folder / "genai_config.json", genai_config(type="gemma3", image_token_id=3, **parts))
    write_json(folder / "processor_config.json", {"processor": {}})


def transformersjs(folder: Path) -> None:
    companions(folder, **{"transformers.js_config": {"use_external_data_format": {"model.onnx": 2}}})
    save(decoder(), folder / "onnx/model.onnx", ["model.onnx_data", "model.onnx_data_1"])


def transformersjs_seq2seq(folder: Path) -> None:
    t5 = {"num_decoder_layers": LAYERS, "num_layers": LAYERS, "num_heads": HEADS, "d_model": HIDDEN, "d_kv": SIZE}
    companions(folder, architectures=["T5ForConditionalGeneration"], model_type="t5", is_encoder_decoder=True, **t5)
    save(encoder(), folder / "onnx/encoder_model.onnx")
    save(decoder(roles=("decoder.", "encoder."), merged=True), folder / "onnx/decoder_model_merged.onnx")


def optimum(folder: Path) -> None:
    companions(folder)
    save(decoder(), folder / "model.onnx", "model.onnx_data")


def optimum_seq2seq(folder: Path) -> None:
    transformersjs_seq2seq(folder)
    for file in (folder / "onnx").iterdir():
        file.rename(folder / file.name)
    (folder / "onnx").rmdir()


def plain(folder: Path) -> None:
    companions(folder)
    save(decoder("batch"), folder / "decode.onnx", "model.onnx.data")
    ports = onnx.load(folder / "decode.onnx", load_external_data=False).graph
    component = {
        "name": "decode",
        "inputs": [{"name": each.name} for each in ports.input],
        "outputs": [{"name": each.name} for each in ports.output],
    }
    graphs = [{"file": "decode.onnx", "component": "decode", "renamed": {}}]
    files = ["decode.onnx", "model.onnx.data", "config.json"]
    write_json(
        folder / "bundle.json",
        {"engine": "plain", "graphs": graphs, "components": [component], "wiring": [], "files": files},
    )


MAKERS: dict[str, Callable[[Path], None]] = {
    maker.__name__: maker
    for maker in (genai, genai_vision, transformersjs, transformersjs_seq2seq, optimum, optimum_seq2seq, plain)
}
