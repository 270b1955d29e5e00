"""What is done to good bundles, and what lint must say then. One change each; those of public issues name the issue."""

from __future__ import annotations

from lint_case import CONFIG, Case, GENAI, GRAPH, JS, OPTIMUM
from lint_changes import (
    add_node,
    attribute_data,
    bfloat16,
    both,
    deep,
    drop,
    drop_port,
    edit_graph,
    edit_json,
    external_shape,
    f32_as_fp16,
    grouped_attention,
    link_out,
    move,
    put,
    relocate,
    remove,
    set_dim,
    set_ir,
    set_opset,
    set_type,
    sparse,
    write,
)
from lint_engine_cases import GENAI_CASES, JS_CASES, OPTIMUM_CASES, PLAIN_CASES
from onnx import TensorProto

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
    Case("external-data-short", GENAI, '"model.onnx.data" ends before', sparse("model.onnx.data", 100)),
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
        "token id 99 is outside the model's vocabulary (0..15)",
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

CASES = [*FILES, *EXTERNAL_DATA, *GRAPHS, *CACHES, *TOKENS, *GENAI_CASES, *JS_CASES, *OPTIMUM_CASES, *PLAIN_CASES]
