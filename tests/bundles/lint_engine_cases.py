"""Cases of rules that engines have of their own; see lint_cases.py."""

from __future__ import annotations

from lint_case import CONFIG, Case, GENAI, GRAPH, JS, OPTIMUM
from lint_changes import (
    add_input,
    both,
    drop,
    drop_port,
    edit_graph,
    edit_json,
    encoder_only_optimum,
    grouped_heads,
    move,
    put,
    relocate,
    remove,
    rename_port,
    set_dim,
    set_type,
    sparse,
    to_onnx_folder_top,
    unmerge,
    write,
)
from onnx import TensorProto

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
    Case("tjs-data-large", JS, "2 GiB and more", sparse("onnx/model.onnx_data", 1 << 31)),
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
