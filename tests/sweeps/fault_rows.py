"""What is spoilt, where: a fault, the model that it spoils and the export that it is part of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Export:
    """How a model is exported: arguments of ``argosy export`` beside the model, the output and the check."""

    #: what tables call it
    name: str
    backend: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    fault: str
    model: str
    export: Export
    #: why the check cannot see it; "": it is to be caught
    missed: str = ""

    @property
    def name(self) -> str:
        return f"{self.fault} {self.model} {self.export.name}"


@dataclass(frozen=True)
class Model:
    """A small checkpoint: the twin of a family's own configuration, with some fields set."""

    family: str
    fields: dict[str, Any] = field(default_factory=dict)


MODELS = {
    "bert": Model("bert"),
    "gemma2": Model("gemma2"),
    "gemma3": Model("gemma3"),
    "gpt2": Model("gpt2"),
    "gpt_oss": Model("gpt_oss", {"eos_token_id": 0}),
    "llama": Model("llama", {"tie_word_embeddings": False, "num_key_value_heads": 2}),
    "llava": Model("llava"),
    "mamba": Model("mamba"),
    "mistral": Model("mistral", {"sliding_window": 8}),
    "qwen2": Model("qwen2"),
    "t5": Model("t5"),
    "vit": Model("vit"),
    "whisper": Model("whisper"),
}

_TEXT = ("--task", "text-generation", "--max-seq-len", "64")
PTE = Export(".pte", "executorch")
PORTABLE = Export(".pte portable", "executorch", ("--recipe", "portable"))
TASK = Export(".pte task", "executorch", _TEXT)
TASK_8DA4W = Export(".pte task 8da4w", "executorch", (*_TEXT, "--qlinear", "8da4w", "--qembedding", "8w"))
TASK_8W = Export(".pte task 8w", "executorch", (*_TEXT, "--qlinear", "8w", "--qembedding", "8w"))
TASK_4W = Export(".pte task 4w", "executorch", (*_TEXT, "--qlinear", "4w", "--qembedding", "4w"))
PTE_8DA8W = Export(".pte 8da8w", "executorch", ("--qlinear", "8da8w"))
#: of fixed ranges, which are seen on what the workshop saves beside the model
_SEEN = ("--qlinear", "8a8w", "--calibrate", "{model}/inputs.safetensors")
PTE_8A8W = Export(".pte 8a8w", "executorch", _SEEN)
PTE_FILTERS = Export(".pte 8a8w with convolutions", "executorch", (*_SEEN, "--qconv", "8a8w"))
MEDIA_TASK = Export(".pte media task", "executorch", ("--task", "multimodal-text-to-text", "--max-seq-len", "128"))
SEQ2SEQ_TASK = Export(".pte seq2seq task", "executorch", ("--task", "text2text-generation", "--max-seq-len", "32"))
SPEECH_TASK = Export(".pte speech task", "executorch", ("--task", "automatic-speech-recognition", "--max-seq-len", "32"))
ONNX = Export("ONNX", "onnx")
GENAI = Export("ONNX genai", "onnx", ("--for", "genai"))
_INT4 = ("--for", "genai", "--quantize", "int4,embedding=int4")
GENAI_INT4 = Export("ONNX genai int4", "onnx", _INT4)
GENAI_INT8 = Export("ONNX genai int8", "onnx", ("--for", "genai", "--quantize", "int8"))
GENAI_ZEROS = Export("ONNX genai int4 with zero points", "onnx", (*_INT4, "--quantize-zero-points"))
GENAI_RTN = Export("ONNX genai int4 rtn", "onnx", (*_INT4, "--quantize-method", "rtn"))
GENAI_K_QUANT = Export("ONNX genai int4 k_quant", "onnx", (*_INT4, "--quantize-method", "k_quant"))
GENAI_NF4 = Export("ONNX genai nf4", "onnx", ("--for", "genai", "--quantize", "nf4"))
OPTIMUM_INT8 = Export("ONNX optimum int8", "onnx", ("--for", "optimum", "--quantize", "int8"))
JS_Q4F16 = Export("ONNX transformers.js q4f16", "onnx", ("--for", "transformersjs", "--dtype", "q4f16"))
JS_Q8 = Export("ONNX transformers.js q8", "onnx", ("--for", "transformersjs", "--dtype", "q8"))
DYNAMIC = Export("ONNX dynamic-int8", "onnx", ("--quantize", "dynamic-int8"))
GENAI_DYNAMIC = Export("ONNX genai dynamic-uint8", "onnx", ("--for", "genai", "--quantize", "dynamic-uint8"))
MIXED = Export("ONNX mixed16", "onnx", ("--dtype", "mixed16"))
OPTIMUM = Export("ONNX optimum", "onnx", ("--for", "optimum"))
PT2 = Export(".pt2", "pt2")

ROWS = [
    # decoders: components
    Row("attention-scale", "llama", PT2),
    Row("head-order", "gemma2", ONNX),
    Row("head-order", "llama", PTE),
    Row("rotary-halves", "llama", ONNX),
    Row("rotary-sign", "qwen2", PT2),
    Row("rotary-frequencies", "mistral", ONNX),
    Row("rotary-factor", "gpt_oss", PT2),
    Row("positions-from-zero", "llama", ONNX),
    Row("causal-off-by-one", "llama", PTE),
    Row("causal-strict", "mistral", PT2),
    Row("window-one-more", "mistral", ONNX),
    Row("window-one-less", "gemma2", PT2),
    Row("layer-pattern", "gemma2", PTE),
    Row("padding-seen", "llama", ONNX),
    Row("soft-cap-dropped", "gemma2", PTE),
    Row("logits-cap-dropped", "gemma2", ONNX),
    Row("sinks-dropped", "gpt_oss", ONNX),
    Row("experts-worst", "gpt_oss", PT2),
    Row("experts-shifted", "gpt_oss", ONNX),
    Row("gate-and-up", "llama", PT2),
    Row("silu-as-gelu", "llama", ONNX),
    Row("residual-dropped", "mistral", PTE),
    Row("norm-offset-dropped", "gemma2", PT2),
    Row("embedding-factor-dropped", "gemma2", ONNX),
    Row("epsilon-tenfold", "llama", ONNX),
    Row("epsilon-tenfold", "gpt2", PT2),
    Row("epsilon-tenfold", "bert", PT2),
    Row("epsilon-tenth", "gemma2", PTE),
    Row("gelu-kind", "gemma2", ONNX),
    Row("gelu-kind", "bert", PTE),
    Row("bias-dropped", "qwen2", PTE),
    Row("norm-bias-dropped", "gpt2", ONNX),
    Row("tied-weight-crossed", "llama", PT2),
    Row("layers-crossed", "llama", ONNX),
    Row("weight-transposed", "qwen2", PTE),
    Row("rows-shifted", "mistral", PT2),
    Row("positions-shifted", "gpt2", PT2),
    Row("rounded-to-bfloat16", "llama", ONNX),
    Row("cache-order", "qwen2", ONNX),
    Row("outputs-crossed", "llama", PT2),
    Row("state-not-updated", "mamba", ONNX),
    Row("kernel-reversed", "mamba", PT2),
    Row("softplus-dropped", "mamba", PTE),
    Row("logits-of-first-token", "llama", PTE),
    # decoders: tasks
    Row("cache-position", "llama", TASK),
    Row("cache-shared", "llama", TASK),
    Row("state-kept", "mamba", TASK),
    Row("first-token-sampled", "llama", TASK),
    Row("logits-of-first-token", "gemma2", TASK),
    Row("causal-off-by-one", "llama", TASK),
    Row("window-one-more", "gemma2", TASK),
    Row("window-one-less", "mistral", TASK),
    Row("layer-pattern", "gemma2", TASK),
    Row("sinks-dropped", "gpt_oss", TASK),
    Row("soft-cap-dropped", "gemma2", TASK),
    Row("rotary-halves", "mistral", TASK),
    Row("positions-from-zero", "llama", TASK),
    Row("epsilon-tenfold", "llama", TASK),
    # integers
    Row("nibble-order", "llama", TASK_8DA4W),
    Row("nibble-sign", "qwen2", TASK_8DA4W),
    Row("group-order", "llama", TASK_8DA4W),
    Row("scale-of-neighbour", "qwen2", TASK_8DA4W),
    Row("zero-point", "llama", TASK_8DA4W),
    Row("embedding-scale", "llama", TASK_8DA4W),
    Row("embedding-zero-point", "llama", TASK_8DA4W),
    Row("gate-and-up", "llama", TASK_8DA4W),
    Row("cache-position", "qwen2", TASK_8DA4W),
    Row("epsilon-tenfold", "llama", TASK_8DA4W),
    Row("bias-scaled", "qwen2", TASK_8W),
    Row("zero-point", "qwen2", TASK_8W),
    Row("lowest-bit", "qwen2", TASK_8W),
    Row("scale-of-neighbour", "qwen2", TASK_8W),
    Row("window-one-more", "mistral", TASK_8W),
    Row("nibble-order", "qwen2", TASK_4W),
    Row("quantized-bias-dropped", "qwen2", TASK_4W),
    Row("embedding-nibble-order", "qwen2", TASK_4W),
    Row("lowest-bit", "bert", PTE_8DA8W,
        missed="of one of eight bits in one weight: less than what rounded activations may differ by"),
    Row("bias-dropped", "bert", PTE_8DA8W),
    Row("static-input-clipped", "bert", PTE_8A8W),
    Row("static-output-clipped", "vit", PTE_8A8W),
    Row("static-scale-of-neighbour", "llama", PTE_8A8W),
    Row("static-bias-of-neighbour", "bert", PTE_8A8W),
    Row("static-bias-dropped", "bert", PTE_8A8W,
        missed="of the queries' bias in one layer: less than what activations that are rounded otherwise may differ by"),
    Row("filter-scale-of-neighbour", "vit", PTE_FILTERS),
    Row("filter-bias-of-neighbour", "vit", PTE_FILTERS),
    Row("onnx-nibble-order", "llama", GENAI_INT4),
    Row("onnx-integers-one-more", "qwen2", GENAI_INT4),
    Row("onnx-scale-of-neighbour", "llama", GENAI_INT4),
    Row("onnx-block-order", "qwen2", GENAI_INT4),
    Row("onnx-embedding-nibble-order", "llama", GENAI_INT4),
    Row("onnx-embedding-scale", "qwen2", GENAI_INT4),
    Row("onnx-expert-scale", "gpt_oss", GENAI_INT4),
    Row("onnx-zero-point", "llama", GENAI_ZEROS),
    Row("onnx-block-order", "llama", GENAI_RTN),
    Row("onnx-zero-point", "qwen2", GENAI_K_QUANT),
    Row("onnx-lowest-bit", "llama", GENAI_INT8),
    Row("normal-nibble-order", "llama", GENAI_NF4),
    Row("normal-scale-of-neighbour", "qwen2", GENAI_NF4),
    Row("onnx-scale-of-neighbour", "bert", OPTIMUM_INT8),
    Row("onnx-lowest-bit", "bert", OPTIMUM_INT8,
        missed="of one of eight bits in the weight of one layer's queries: less than what the engine's own rounding may differ by"),
    Row("onnx-nibble-order", "qwen2", JS_Q4F16),
    Row("onnx-scale-of-neighbour", "llama", JS_Q8),
    Row("integers-one-more", "bert", DYNAMIC),
    Row("integers-columns", "bert", DYNAMIC),
    Row("integers-zero-point", "llama", GENAI_DYNAMIC,
        missed="of one of 255 steps in one weight: less than what rounded activations may differ by"),
    Row("window-one-more", "mistral", MIXED),
    Row("bias-dropped", "bert", MIXED),
    Row("onnx-rotary-pairs", "llama", GENAI_INT4),
    Row("window-one-more", "mistral", GENAI_INT4),
    # programs and graphs
    Row("memory-overlap", "llama", PORTABLE),
    Row("memory-overlap", "gemma2", TASK),
    Row("data-crossed", "bert", PORTABLE),
    Row("operands-swapped", "llama", PTE),
    Row("onnx-outputs-crossed", "llama", ONNX),
    Row("onnx-weights-crossed", "bert", ONNX),
    Row("onnx-softmax-axis", "gemma2", ONNX),
    Row("onnx-state-order", "llama", GENAI),
    Row("onnx-rotary-pairs", "llama", GENAI),
    Row("onnx-comparison", "mistral", ONNX),
    Row("onnx-outputs-crossed", "qwen2", GENAI),
    Row("rotary-frequencies", "llama", GENAI),
    Row("positions-from-zero", "qwen2", GENAI),
    Row("window-one-more", "mistral", GENAI),
    Row("window-dropped", "mistral", ONNX),
    Row("onnx-difference", "gpt_oss", ONNX),
    Row("onnx-expert-left-out", "gpt_oss", GENAI),
    Row("onnx-score-bias-dropped", "bert", OPTIMUM),
    # encoders, encoder-decoders, pictures and sound
    Row("padding-seen", "bert", ONNX),
    Row("positions-shifted", "bert", ONNX),
    Row("padding-seen", "t5", PTE),
    Row("cross-padding-seen", "t5", ONNX),
    Row("relative-buckets", "t5", PT2),
    Row("relative-buckets", "t5", SEQ2SEQ_TASK),
    Row("outputs-crossed", "whisper", ONNX),
    Row("encoder-made-causal", "whisper", PT2),
    Row("kernel-reversed", "whisper", PTE),
    Row("encoder-made-causal", "whisper", SPEECH_TASK),
    Row("causal-dropped", "whisper", PT2),
    Row("encoder-made-causal", "vit", ONNX),
    Row("patches-turned", "vit", PTE),
    Row("channels-reversed", "vit", PT2),
    Row("pictures-turned", "vit", ONNX),
    Row("pooled-token", "vit", PTE),
    Row("media-shifted", "llava", ONNX),
    Row("media-misplaced", "llava", PT2),
    Row("media-shifted", "llava", MEDIA_TASK),
    Row("token-types-ignored", "gemma3", PTE),
    Row("media-shifted", "gemma3", MEDIA_TASK),
]
