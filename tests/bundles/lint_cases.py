"""What is done to good bundles, and what lint must say then. One change each; those of public issues name the issue."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from lint_bundles import decoder, move_out, save, value, write_json
from onnx import TensorProto, helper, numpy_helper

Spoil = Callable[[Path], None]


@dataclasses.dataclass(frozen=True)
class Case:
    """`spoil` gets the folder of a `bundle` of lint_bundles. Lint must report `rule` with `message` in it, and `also`."""

    rule: str
    bundle: str
    message: str
    spoil: Spoil
    issue: str = ""  # the public one whose defect this is
    also: tuple[str, ...] = ()
    engine: str = ""  # "": the bundle's
    name: str = ""


def edit_json(file: str, edit: Callable[[dict], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        edit(content)
        write_json(folder / file, content)

    return spoil


def edit_graph(file: str, edit: Callable[[onnx.ModelProto], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        made = onnx.load(folder / file, load_external_data=False)
        edit(made)
        (folder / file).write_bytes(made.SerializeToString())

    return spoil


def move(file: str, to: str) -> Spoil:
    return lambda folder: (folder / file).rename(folder / to)


def remove(*files: str) -> Spoil:
    def spoil(folder: Path) -> None:
        for file in files:
            (folder / file).unlink()

    return spoil


def write(file: str, data: bytes) -> Spoil:
    return lambda folder: (folder / file).write_bytes(data)


def put(file: str, key: str, content: object) -> Spoil:
    """Sets a value in JSON; `key` has slashes between its parts."""

    def edit(document: dict) -> None:
        *parents, last = key.split("/")
        for parent in parents:
            document = document[parent]
        document[last] = content

    return edit_json(file, edit)


def drop(file: str, key: str) -> Spoil:
    def edit(document: dict) -> None:
        *parents, last = key.split("/")
        for parent in parents:
            document = document[parent]
        del document[last]

    return edit_json(file, edit)


def both(*spoils: Spoil) -> Spoil:
    def spoil(folder: Path) -> None:
        for each in spoils:
            each(folder)

    return spoil


def sparse(file: str, size: int) -> Spoil:
    def spoil(folder: Path) -> None:
        with (folder / file).open("r+b") as out:
            out.truncate(size)

    return spoil


def link_out(file: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / file).rename(folder.parent / "elsewhere")
        (folder / file).symlink_to("../elsewhere")

    return spoil


def deep(folder: Path) -> None:
    os.makedirs(folder / "a/b/c/d/e")
    (folder / "a/b/c/d/e/file").write_text("")


def relocate(location: str) -> Callable[[onnx.ModelProto], None]:
    def edit(made: onnx.ModelProto) -> None:
        for tensor in made.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = location

    return edit


def rename_port(old: str, new: str) -> Callable[[onnx.ModelProto], None]:
    def edit(made: onnx.ModelProto) -> None:
        for node in made.graph.node:
            node.input[:] = [new if name == old else name for name in node.input]
            node.output[:] = [new if name == old else name for name in node.output]
        for port in [*made.graph.input, *made.graph.output]:
            port.name = new if port.name == old else port.name

    return edit


def drop_port(*names: str) -> Callable[[onnx.ModelProto], None]:
    def edit(made: onnx.ModelProto) -> None:
        for ports in (made.graph.input, made.graph.output):
            kept = [port for port in ports if port.name not in names]
            del ports[:]
            ports.extend(kept)

    return edit


def set_dim(names: tuple[str, ...], dim: int, size: int | str) -> Callable[[onnx.ModelProto], None]:
    """Of the ports whose names hold one of these."""

    def edit(made: onnx.ModelProto) -> None:
        for port in [*made.graph.input, *made.graph.output]:
            if any(name in port.name for name in names):
                entry = port.type.tensor_type.shape.dim[dim]
                entry.Clear()
                setattr(entry, "dim_value" if isinstance(size, int) else "dim_param", size)

    return edit


def set_type(name: str, dtype: int) -> Callable[[onnx.ModelProto], None]:
    def edit(made: onnx.ModelProto) -> None:
        for port in [*made.graph.input, *made.graph.output]:
            if port.name == name:
                port.type.tensor_type.elem_type = dtype

    return edit


def add_input(made: onnx.ModelProto) -> None:
    made.graph.input.append(value("cache_position", ["sequence"], TensorProto.INT64))
    for node in made.graph.node:
        if node.op_type == "Gather":  # the embeddings are then those of other tokens
            node.input[1] = "moved"
    made.graph.node.insert(0, helper.make_node("Add", ["input_ids", "cache_position"], ["moved"]))


def add_node(op: str, domain: str, imported: bool) -> Callable[[onnx.ModelProto], None]:
    def edit(made: onnx.ModelProto) -> None:
        made.graph.node.append(helper.make_node(op, [made.graph.input[0].name], ["unused"], domain=domain))
        if imported:
            made.opset_import.append(helper.make_opsetid(domain, 1))

    return edit


def bfloat16(made: onnx.ModelProto) -> None:
    for tensor in made.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.data_type = TensorProto.BFLOAT16
            tensor.raw_data = tensor.raw_data[: len(tensor.raw_data) // 2]


def attribute_data(folder: Path) -> None:
    """A constant of a node, and not an initializer, is what is left behind."""
    made = onnx.load(folder / "model.onnx", load_external_data=False)
    tensor = numpy_helper.from_array(np.zeros(8, np.float32), "c")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "onnx__MatMul_9086"
    made.graph.node.append(helper.make_node("Constant", [], ["c"], value=tensor))
    (folder / "model.onnx").write_bytes(made.SerializeToString())


def external_shape(folder: Path) -> None:
    made = onnx.load(folder / "model.onnx", load_external_data=False)
    tensor = next(each for each in made.graph.initializer if each.name == "split")
    with (folder / "model.onnx.data").open("ab") as data:
        move_out(tensor, "model.onnx.data", data.tell())
        data.write(tensor.raw_data)
    tensor.ClearField("raw_data")
    (folder / "model.onnx").write_bytes(made.SerializeToString())


def grouped_attention(made: onnx.ModelProto) -> None:
    """Heads of 4, by an op that wants more."""
    made.graph.node.append(helper.make_node("GroupQueryAttention", ["hidden"], ["unused"], domain="com.microsoft"))
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def set_opset(version: int, domain: str = "") -> Callable[[onnx.ModelProto], None]:
    def edit(made: onnx.ModelProto) -> None:
        del made.opset_import[:]
        made.opset_import.append(helper.make_opsetid("", version if not domain else 22))
        if domain:
            made.opset_import.append(helper.make_opsetid(domain, version))

    return edit


def set_ir(version: int) -> Callable[[onnx.ModelProto], None]:
    return lambda made: setattr(made, "ir_version", version)


def unmerge(folder: Path) -> None:
    (folder / "onnx/decoder_model_merged.onnx").rename(folder / "onnx/decoder_with_past_model.onnx")
    save(decoder(roles=("decoder.",), merged=True), folder / "onnx/decoder_model.onnx")


def f32_as_fp16(folder: Path) -> None:
    save(decoder(), folder / "onnx/model_fp16.onnx")


def to_onnx_folder_top(folder: Path) -> None:
    for file in sorted((folder / "onnx").iterdir()):
        file.rename(folder / file.name)


def encoder_only_optimum(folder: Path) -> None:
    (folder / "encoder_model.onnx").unlink()


def grouped_heads(folder: Path) -> None:
    """Heads of 4 in the graph; hidden_size / num_attention_heads is 2, and head_dim says 4."""
    edit_json("config.json", lambda config: config.update(num_attention_heads=4, head_dim=4, model_type="qwen3"))(
        folder
    )


GENAI, JS, OPTIMUM = "genai", "transformersjs", "optimum"
GRAPH, CONFIG = "genai_config.json", "config.json"

FILES = [
    Case(
        "graph-none",
        GENAI,
        "there is no .onnx file",
        remove("model.onnx"),
        also=("external-data-unused", "genai-file-missing"),
    ),
    Case(
        "graph-unreadable",
        GENAI,
        "not a usable ONNX model",
        write("model.onnx", b"version https://git-lfs.github.com/spec/v1\n"),
    ),
    Case(
        "graph-unreadable", GENAI, "a link to nothing", lambda f: (f / "more.onnx").symlink_to("nothing"), name="link"
    ),
    # onnx/onnx#3275: a model above 2 GB in one file.
    Case(
        "graph-too-large",
        GENAI,
        "2 GiB",
        sparse("model.onnx", (1 << 31) + 1),
        issue="onnx#3275",
        also=("graph-unreadable",),
    ),
    Case("json-unreadable", GENAI, "tokenizer.json", write("tokenizer.json", b'{"a": NaN}')),
    Case("json-unreadable", GENAI, "no object", write("generation_config.json", b"[]"), name="array"),
    Case("json-unreadable", JS, "config.json", write("config.json", b"\xff\xfe{"), name="encoding"),
    Case(
        "manifest-file-missing",
        "plain",
        "decode2.onnx",
        edit_json("bundle.json", lambda m: m["files"].append("decode2.onnx")),
    ),
    Case("link-outside", GENAI, "1 of its files", link_out("tokenizer.json")),
    Case("folder-too-large", GENAI, "more files or folders", deep),
]

EXTERNAL_DATA = [
    Case(
        "external-data-outside",
        GENAI,
        '"../model.onnx.data"',
        edit_graph("model.onnx", relocate("../model.onnx.data")),
        also=("external-data-unused",),
    ),
    Case(
        "external-data-outside",
        GENAI,
        '"/tmp/model.data"',
        edit_graph("model.onnx", relocate("/tmp/model.data")),
        also=("external-data-unused",),
        name="absolute",
    ),
    # UKPLab/sentence-transformers#3438: the weights stay where the graph was made.
    Case(
        "external-data-missing",
        GENAI,
        '"model.onnx.data", which is not there',
        remove("model.onnx.data"),
        issue="sentence-transformers#3438",
    ),
    Case("external-data-missing", GENAI, '"onnx__MatMul_9086"', attribute_data, name="attribute"),
    # huggingface/optimum#1736: model.onnx_data is downloaded, model.onnx.data is what the graph names.
    Case(
        "external-data-misnamed",
        GENAI,
        'but the file is called "model.onnx_data"',
        move("model.onnx.data", "model.onnx_data"),
        issue="optimum#1736",
        also=("external-data-unused",),
    ),
    Case("external-data-short", GENAI, "it needs", sparse("model.onnx.data", 100)),
    Case(
        "external-data-link", GENAI, "is a link to a file outside", link_out("model.onnx.data"), also=("link-outside",)
    ),
    # huggingface/optimum-onnx#13: some ops break when all tensors are external.
    Case("external-data-shapes", GENAI, '"split" are external, 1 in all', external_shape, issue="optimum-onnx#13"),
    Case("external-data-unused", GENAI, "no graph uses", write("old.onnx.data", b"1234")),
]

GRAPHS = [
    Case("ir-too-new", GENAI, "its IR version is 14", edit_graph("model.onnx", set_ir(14))),
    Case(
        "opset-too-new",
        GENAI,
        'version 28 of "ai.onnx", the runtime takes up to 26',
        edit_graph("model.onnx", set_opset(28)),
    ),
    Case(
        "opset-too-new",
        GENAI,
        'version 2 of "com.microsoft"',
        edit_graph("model.onnx", set_opset(2, "com.microsoft")),
        name="contrib",
    ),
    Case(
        "opset-not-imported",
        GENAI,
        '"com.microsoft"',
        edit_graph("model.onnx", add_node("Gelu", "com.microsoft", False)),
    ),
    Case("op-unknown", GENAI, "pkg.torch::aten_add", edit_graph("model.onnx", add_node("aten_add", "pkg.torch", True))),
    Case("bf16-on-cpu", "genai_vision", "are bf16", edit_graph("vision.onnx", bfloat16)),
    Case(
        "bf16-on-cpu",
        "genai_vision",
        "bf16 inputs",
        edit_graph("vision.onnx", set_type("pixel_values", TensorProto.BFLOAT16)),
        name="input",
    ),
    Case("dtype-not-as-named", JS, '"_fp16"', f32_as_fp16),
    # pytorch/pytorch#140011: a dim becomes the number that it was in the example.
    Case(
        "batch-fixed",
        GENAI,
        "input_ids (1)",
        edit_graph("model.onnx", set_dim(("input_ids",), 0, 1)),
        issue="pytorch#140011",
    ),
    Case(
        "sequence-fixed",
        GENAI,
        "input_ids (7)",
        edit_graph("model.onnx", set_dim(("input_ids",), 1, 7)),
        issue="pytorch#150842",
    ),
]

CACHES = [
    Case("cache-unpaired", OPTIMUM, '"present.1.value"', edit_graph("model.onnx", drop_port("present.1.value"))),
    Case(
        "cache-half",
        OPTIMUM,
        '"past_key_values.1.value"',
        edit_graph("model.onnx", drop_port("past_key_values.1.value", "present.1.value")),
    ),
    Case("cache-type", OPTIMUM, "is f16", edit_graph("model.onnx", set_type("present.0.key", TensorProto.FLOAT16))),
    Case("cache-layers", OPTIMUM, 'none for "2"', put(CONFIG, "num_hidden_layers", 3)),
    Case(
        "cache-layers",
        OPTIMUM,
        'none for "0"',
        edit_graph(
            "model.onnx",
            drop_port("past_key_values.0.value", "present.0.value", "past_key_values.0.key", "present.0.key"),
        ),
        name="gap",
    ),
    # huggingface/optimum-onnx#97: Got: 64 Expected: 128.
    Case(
        "cache-shape",
        OPTIMUM,
        "by config.json it has 2 heads of 8",
        put(CONFIG, "head_dim", 8),
        issue="optimum-onnx#97",
    ),
    Case(
        "cache-shape",
        "plain",
        "by config.json it has 1 heads of 4",
        put(CONFIG, "num_key_value_heads", 1),
        name="heads",
    ),
]

CACHES.append(
    Case(
        "attention-head-size",
        GENAI,
        "GroupQueryAttention computes heads of 4",
        edit_graph("model.onnx", grouped_attention),
    )
)

TOKENS = [
    Case(
        "token-id-range",
        OPTIMUM,
        "eos_token_id is 128009, there are 16 tokens",
        put("generation_config.json", "eos_token_id", [2, 128009]),
    ),
    Case(
        "token-id-range",
        "genai_vision",
        "image_token_id is 262144",
        put(GRAPH, "model/image_token_id", 262144),
        name="image",
    ),
    Case(
        "token-id-unknown",
        OPTIMUM,
        "eos_token_id is 15, which tokenizer.json has no token for",
        both(put("generation_config.json", "eos_token_id", [2, 15]), drop("tokenizer.json", "model/vocab/t15")),
    ),
    # pytorch/executorch#22042: begin and end tokens of another model.
    Case(
        "token-id-differs",
        OPTIMUM,
        "the tokenizer's eos_token is 2",
        put("generation_config.json", "eos_token_id", 3),
        issue="executorch#22042",
    ),
    Case(
        "vocabulary-too-large",
        OPTIMUM,
        "tokens up to 99, the model knows 16",
        put("tokenizer.json", "model/vocab/more", 99),
    ),
    Case(
        "eos-missing",
        OPTIMUM,
        "eos_token_id",
        both(drop(CONFIG, "eos_token_id"), drop("generation_config.json", "eos_token_id")),
    ),
    Case("chat-template-missing", GENAI, "no chat template", put(CONFIG, "_name_or_path", "org/Model-8B-Instruct")),
    Case(
        "processor-missing",
        "genai_vision",
        "pixel_values",
        remove("processor_config.json"),
        also=("genai-processor-missing",),
    ),
]

GENAI_CASES = [
    # huggingface/optimum-onnx#33: graphs of optimum, without the file that the engine opens.
    Case(
        "genai-config-missing",
        OPTIMUM,
        "there is no genai_config.json",
        lambda f: None,
        issue="optimum-onnx#33",
        engine=GENAI,
    ),
    Case("genai-type-unknown", GENAI, '"mixtral"', put(GRAPH, "model/type", "mixtral")),
    Case("genai-type-unknown", GENAI, "is missing", drop(GRAPH, "model/type"), name="none"),
    Case("genai-key-refused", GENAI, "model.decoder.head_dim is not a key", put(GRAPH, "model/decoder/head_dim", 4)),
    Case(
        "genai-key-refused",
        GENAI,
        "model.pad_token_id is null, the engine reads a number",
        put(GRAPH, "model/pad_token_id", None),
        name="null",
    ),
    Case("genai-context-length", GENAI, "missing or not above 0", drop(GRAPH, "model/context_length")),
    Case("genai-context-length", GENAI, "search.max_length is 65", put(GRAPH, "search/max_length", 65), name="search"),
    Case("genai-vocab-size", GENAI, "missing", drop(GRAPH, "model/vocab_size")),
    Case("genai-vocab-size", GENAI, "is 17, the logits", put(GRAPH, "model/vocab_size", 17), name="logits"),
    Case(
        "genai-file-missing",
        GENAI,
        '"decoder.onnx", which is not there',
        put(GRAPH, "model/decoder/filename", "decoder.onnx"),
    ),
    Case(
        "genai-file-missing",
        GENAI,
        "not a plain path",
        put(GRAPH, "model/decoder/filename", "../model.onnx"),
        name="outside",
    ),
    # microsoft/onnxruntime-genai#1655: vision and embedding are not built.
    Case(
        "genai-part-missing",
        "genai_vision",
        '"vision", "embedding"',
        edit_json(GRAPH, lambda c: [c["model"].pop(k) for k in ("vision", "embedding")]),
        issue="onnxruntime-genai#1655",
    ),
    # microsoft/onnxruntime#21282: nor is the processor's file.
    Case(
        "genai-processor-missing",
        "genai_vision",
        '"processor_config.json"',
        move("processor_config.json", "preprocessor_config.json"),
        issue="onnxruntime#21282",
    ),
    Case("genai-input", GENAI, '"cache_position"', edit_graph("model.onnx", add_input)),
    Case(
        "genai-input",
        GENAI,
        'no input "input_ids"',
        edit_graph("model.onnx", rename_port("input_ids", "tokens")),
        name="tokens",
    ),
    Case("genai-output", GENAI, '"logits"', edit_graph("model.onnx", rename_port("logits", "lm_logits"))),
    Case(
        "genai-mask-type",
        GENAI,
        "they must be alike",
        edit_graph("model.onnx", set_type("position_ids", TensorProto.INT32)),
    ),
    Case("genai-share-buffer", GENAI, "caches grow", put(GRAPH, "search/past_present_share_buffer", True)),
    Case("genai-cache-shape", GENAI, "2 heads of 8", put(GRAPH, "model/decoder/head_size", 8)),
    Case("genai-eos", GENAI, "is missing", drop(GRAPH, "model/eos_token_id")),
    Case("genai-eos", GENAI, "also ends at 5", put("generation_config.json", "eos_token_id", [2, 5]), name="more"),
    Case(
        "genai-eos",
        GENAI,
        "is missing",
        both(
            put(CONFIG, "eos_token_id", None),
            drop("generation_config.json", "eos_token_id"),
            drop(GRAPH, "model/eos_token_id"),
            drop(GRAPH, "model/pad_token_id"),
        ),
        name="pad",
    ),
    Case("genai-tokenizer-missing", GENAI, "no tokenizer.json", remove("tokenizer.json")),
    # microsoft/onnxruntime-genai#1987: "TokenizersBackend" is not supported.
    Case(
        "genai-tokenizer-class",
        GENAI,
        "TokenizersBackend",
        put("tokenizer_config.json", "tokenizer_class", "TokenizersBackend"),
        issue="onnxruntime-genai#1987",
    ),
]

JS_CASES = [
    Case("tjs-config-missing", JS, "there is no config.json", remove(CONFIG)),
    Case(
        "tjs-config-missing", JS, "no model_type", drop(CONFIG, "model_type"), name="type", also=("tjs-cache-unknown",)
    ),
    # huggingface/transformers.js#1485: listed as compatible, and without onnx/model.onnx.
    Case("tjs-graph-missing", JS, "there is no onnx/model.onnx", move("onnx", "graphs"), issue="transformers.js#1485"),
    Case("tjs-graph-missing", JS, "it lies beside config.json", to_onnx_folder_top, name="top"),
    # huggingface/transformers.js#917: the converter left two decoders.
    Case(
        "tjs-not-merged",
        "transformersjs_seq2seq",
        "no onnx/decoder_model_merged.onnx",
        unmerge,
        issue="transformers.js#917",
    ),
    Case(
        "tjs-dtype",
        JS,
        "onnx/model.onnx is not there",
        both(move("onnx/model.onnx", "onnx/model_quantized.onnx"), drop(CONFIG, "transformers.js_config")),
        also=("tjs-data-name", "dtype-not-as-named"),
    ),
    Case("tjs-dtype", JS, '"float32"', put(CONFIG, "transformers.js_config/dtype", "float32"), name="unknown"),
    Case(
        "tjs-data-name",
        JS,
        '"model.onnx.data"',
        both(edit_graph("onnx/model.onnx", relocate("model.onnx.data")), write("onnx/model.onnx.data", bytes(4096))),
        also=("external-data-unused",),
    ),
    # huggingface/transformers.js#1460: model.onnx_data_1 is not downloaded.
    Case(
        "tjs-data-undeclared",
        JS,
        "has 2 files of data, use_external_data_format declares 1",
        put(CONFIG, "transformers.js_config/use_external_data_format", True),
        issue="transformers.js#1460",
    ),
    Case("tjs-data-undeclared", JS, "declares 0", drop(CONFIG, "transformers.js_config"), name="none"),
    Case(
        "tjs-data-missing",
        "transformersjs_seq2seq",
        "onnx/encoder_model.onnx_data",
        put(CONFIG, "transformers.js_config", {"use_external_data_format": True}),
    ),
    # huggingface/transformers.js#1415: a type that this version has no cache for.
    Case("tjs-cache-unknown", JS, '"qwen4"', put(CONFIG, "model_type", "qwen4"), issue="transformers.js#1415"),
    Case("tjs-cache-name", JS, '"past_key_values.1.key"', put(CONFIG, "num_hidden_layers", 1), also=("cache-layers",)),
    Case(
        "tjs-cache-dim",
        JS,
        'is called "batch"',
        edit_graph("onnx/model.onnx", set_dim(("past_key_values", "present"), 0, "batch")),
    ),
    Case(
        "tjs-cross-cache",
        "transformersjs_seq2seq",
        "does not give them",
        edit_graph(
            "onnx/decoder_model_merged.onnx",
            drop_port(*(f"present.{i}.encoder.{h}" for i in (0, 1) for h in ("key", "value"))),
        ),
    ),
    Case("tjs-input", JS, '"cache_position"', edit_graph("onnx/model.onnx", add_input)),
    Case("tjs-output", JS, "logits", edit_graph("onnx/model.onnx", rename_port("logits", "scores"))),
    Case(
        "tjs-output",
        "transformersjs_seq2seq",
        "last_hidden_state",
        edit_graph("onnx/encoder_model.onnx", rename_port("last_hidden_state", "hidden")),
        name="encoder",
    ),
    Case("tjs-tokenizer-missing", JS, "tokenizer.json", remove("tokenizer.json")),
    Case("tjs-generation-config", JS, "generation_config.json", remove("generation_config.json")),
]

OPTIMUM_CASES = [
    Case("optimum-config-missing", OPTIMUM, "there is no config.json", remove(CONFIG)),
    Case("optimum-graph-missing", "optimum_seq2seq", "no encoder_model.onnx", encoder_only_optimum),
    Case(
        "optimum-past-missing",
        "optimum_seq2seq",
        "without decoder_with_past_model.onnx",
        move("decoder_model_merged.onnx", "decoder_model.onnx"),
    ),
    Case(
        "optimum-graph-name",
        OPTIMUM,
        "no model.onnx",
        both(
            move("model.onnx", "llama.onnx"),
            edit_graph("llama.onnx", relocate("llama.onnx_data")),
            move("model.onnx_data", "llama.onnx_data"),
        ),
    ),
    Case(
        "optimum-data-name",
        OPTIMUM,
        '"model.onnx.data", downloaded',
        both(edit_graph("model.onnx", relocate("model.onnx.data")), move("model.onnx_data", "model.onnx.data")),
        issue="optimum#1736",
    ),
    Case("optimum-input", OPTIMUM, '"cache_position"', edit_graph("model.onnx", add_input)),
    Case("optimum-output", OPTIMUM, "logits", edit_graph("model.onnx", rename_port("logits", "scores"))),
    Case("optimum-cache-size", OPTIMUM, "the engine makes 2 heads of 2", grouped_heads, issue="optimum-onnx#97"),
    Case(
        "optimum-merged",
        "optimum_seq2seq",
        "does not give them",
        edit_graph(
            "decoder_model_merged.onnx",
            drop_port(*(f"present.{i}.encoder.{h}" for i in (0, 1) for h in ("key", "value"))),
        ),
    ),
    Case("optimum-tokenizer-missing", OPTIMUM, "tokenizer_config.json", remove("tokenizer_config.json")),
    Case(
        "optimum-tokenizer-class",
        OPTIMUM,
        "TokenizersBackend",
        put("tokenizer_config.json", "tokenizer_class", "TokenizersBackend"),
    ),
    Case("optimum-generation-config", OPTIMUM, "generation_config.json", remove("generation_config.json")),
]

PLAIN_CASES = [
    Case("plain-port-missing", "plain", '"logits"', edit_graph("decode.onnx", rename_port("logits", "scores"))),
    Case(
        "plain-wiring",
        "plain",
        '"encoder.hidden"',
        put("bundle.json", "wiring", [{"from": "encoder.hidden", "to": "decode.input_ids"}]),
    ),
]

CASES = [*FILES, *EXTERNAL_DATA, *GRAPHS, *CACHES, *TOKENS, *GENAI_CASES, *JS_CASES, *OPTIMUM_CASES, *PLAIN_CASES]
