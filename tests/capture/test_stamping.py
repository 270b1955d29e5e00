"""Captures of deep models from traces of shallow ones: equal to whole traces, or refused."""

from __future__ import annotations

import copy
import functools
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest
import torch
from transformers import Gemma3TextConfig, LlamaConfig, LlamaForCausalLM, Qwen2MoeConfig, Qwen2MoeForCausalLM, T5Config
from transformers.pytorch_utils import compile_compatible_method_lru_cache
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding
from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeSparseMoeBlock

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))
from core import find_core  # noqa: E402

find_core()

from argosy.capture import stamping, weightless  # noqa: E402
from argosy.capture.__main__ import main  # noqa: E402
from argosy.capture.configuration import canonical  # noqa: E402
from argosy.capture.remembered_shapes import RememberedShapes  # noqa: E402
from argosy.capture.layer_calls import CallsOfLayers  # noqa: E402
from argosy.capture.layer_kinds import described  # noqa: E402
from argosy.capture.layer_selection import selections  # noqa: E402
from argosy.capture.session import Session, open_session, session_content, trace_session  # noqa: E402
from argosy.capture.shapes_only import ShapesOnly  # noqa: E402
from argosy.capture.stamp_difference import difference  # noqa: E402
from argosy.capture.stamping import NotStamped, stamped_content  # noqa: E402

DEPTH = 8
SMALL: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64}


def llama(**changes: Any) -> LlamaConfig:
    return LlamaConfig(**{**SMALL, "num_hidden_layers": DEPTH, **changes})


def gemma(**changes: Any) -> Gemma3TextConfig:
    return Gemma3TextConfig(**{**SMALL, "num_hidden_layers": 10, "head_dim": 8, "sliding_window": 8, **changes})


def moe(**changes: Any) -> Qwen2MoeConfig:
    return Qwen2MoeConfig(**{**SMALL, "num_hidden_layers": 12, "moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2,
                             "shared_expert_intermediate_size": 16, **changes})  # fmt: skip


def stamped_beside_whole(session: Session) -> str:
    configuration = canonical(session.config.to_dict())
    stamped = stamped_content(session, configuration)
    trace_session(session)
    return difference(stamped, session_content(session, configuration))


REGULAR: dict[str, Callable[[], Any]] = {
    "all layers alike": llama,
    "windows and rotary bases by kind of layer, first one kind, then both by turns": lambda: gemma(
        layer_types=[f"{'full' if i > 3 and i % 2 else 'sliding'}_attention" for i in range(10)]),
    "two stacks, and a bias that the first layer computes": lambda: T5Config(
        d_model=32, d_kv=8, d_ff=48, num_layers=6, num_decoder_layers=6, num_heads=4, vocab_size=64),
}  # fmt: skip


@pytest.mark.parametrize("name", REGULAR)
def test_a_stamped_capture_is_the_whole_trace(name: str) -> None:
    assert stamped_beside_whole(open_session(REGULAR[name]())) == ""


# ---- models made irregular ------------------------------------------------------------------------------------------

#: Deeper than what is traced for a model whose layers are alike.
ODD = 5


def _other_scale(model: Any) -> None:
    model.layers[ODD].self_attn.scaling *= 2


def _other_activation(model: Any) -> None:
    model.layers[ODD].mlp.act_fn = torch.nn.GELU()


def _other_activation_function(model: Any) -> None:
    for i, layer in enumerate(model.layers):
        layer.mlp.act_fn = None
        layer.mlp.forward = _mlp_of(layer.mlp, torch.relu if i == ODD else torch.sigmoid)


def _mlp_of(mlp: Any, function: Callable) -> Callable:
    return lambda x: mlp.down_proj(function(mlp.gate_proj(x)) * mlp.up_proj(x))


def _one_bias(model: Any) -> None:
    model.layers[ODD].self_attn.q_proj = torch.nn.Linear(32, 32, bias=True)


def _other_width(model: Any) -> None:
    mlp = model.layers[ODD].mlp
    mlp.gate_proj, mlp.up_proj, mlp.down_proj = (torch.nn.Linear(*size, bias=False) for size in ((32, 40), (32, 40), (40, 32)))


def _other_epsilon(model: Any) -> None:
    model.layers[ODD].input_layernorm.variance_epsilon = 1e-3


def _one_module_more(model: Any) -> None:
    layer = model.layers[ODD].mlp
    layer.down_proj = torch.nn.Sequential(layer.down_proj, torch.nn.LayerNorm(32))



class _Irregular(LlamaDecoderLayer):
    """Its forward depends on its place; no attribute tells."""

    def forward(self, hidden_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return self.changed(super().forward(hidden_states, *args, **kwargs), self.self_attn.layer_idx)

    def changed(self, hidden: torch.Tensor, place: int) -> torch.Tensor:
        raise NotImplementedError


class _Grows(_Irregular):
    def changed(self, hidden: torch.Tensor, place: int) -> torch.Tensor:
        return hidden * (1 + 0.01 * place)


class _Branches(_Irregular):
    def changed(self, hidden: torch.Tensor, place: int) -> torch.Tensor:
        return hidden * 2 if place >= ODD else hidden


class _BranchesOnce(_Irregular):
    def changed(self, hidden: torch.Tensor, place: int) -> torch.Tensor:
        return hidden + 1 if place == ODD else hidden


class _Lifts(_Irregular):
    def changed(self, hidden: torch.Tensor, place: int) -> torch.Tensor:
        return hidden * torch.tensor(1.5 if place == ODD else 2.5)


class _KnowsTheDepth(_Irregular):
    def changed(self, hidden: torch.Tensor, place: int) -> torch.Tensor:
        return hidden * (2 * self.self_attn.config.num_hidden_layers) ** -0.5


class _KnowsTheLast(_Irregular):
    def changed(self, hidden: torch.Tensor, place: int) -> torch.Tensor:
        return hidden if place + 1 < self.self_attn.config.num_hidden_layers else hidden.neg()


class _Remembers(_Irregular):
    """One layer adds what the second one gave, others what the one before them took."""

    memory: dict[str, torch.Tensor] = {}

    def changed(self, hidden: torch.Tensor, place: int) -> torch.Tensor:
        if place == 1:
            self.memory["second"] = hidden
        return hidden + self.memory["second"] if place == ODD else hidden + hidden if place else hidden


def _of(kind: type) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for layer in model.layers:
            layer.__class__ = kind

    return change


def _again(model: Any) -> None:
    model.layers[ODD].__class__ = type("_Twice", (LlamaDecoderLayer,), {"forward": _twice})


def _twice(self: Any, hidden_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    return LlamaDecoderLayer.forward(self, hidden_states, *args, **kwargs) * 1.0


def _scaled_by_depth(model: Any) -> None:
    norm = model.norm.forward
    model.norm.forward = lambda hidden: norm(hidden) / len(model.layers)


def _shared_weights(model: Any) -> None:
    model.layers[ODD].mlp = model.layers[1].mlp


def _shared_cache(model: Any) -> None:
    model.layers[ODD].self_attn.layer_idx = 1


def _other_heads(model: Any) -> None:
    attention = model.layers[ODD].self_attn
    attention.k_proj, attention.v_proj = (torch.nn.Linear(32, 8, bias=False) for _ in range(2))
    attention.num_key_value_groups = 4


class _Windowed(LlamaDecoderLayer):
    """One layer sees few tokens; no attribute tells."""

    def forward(self, hidden_states: torch.Tensor, attention_mask: Any = None, **kwargs: Any) -> Any:
        if self.self_attn.layer_idx == ODD:
            seen = torch.ones(attention_mask.shape[-2:], dtype=torch.bool, device=attention_mask.device).triu(diagonal=-3)
            attention_mask = attention_mask & seen if attention_mask.dtype == torch.bool else attention_mask * seen
        return super().forward(hidden_states, attention_mask=attention_mask, **kwargs)


IRREGULAR: dict[str, Callable[[Any], None]] = {
    "another scale": _other_scale,
    "another activation": _other_activation,
    "another activation, a plain function": _other_activation_function,
    "one bias": _one_bias,
    "another width": _other_width,
    "another epsilon": _other_epsilon,
    "one module more": _one_module_more,
    "a constant that grows with the place": _of(_Grows),
    "a branch beyond the traced depth": _of(_Branches),
    "a branch at one place": _of(_BranchesOnce),
    "a number lifted at one place": _of(_Lifts),
    "a constant of the depth": _of(_KnowsTheDepth),
    "a value of an earlier layer": _of(_Remembers),
    "a layer of another class": _again,
    "weights that two layers share": _shared_weights,
    "a cache that two layers share": _shared_cache,
    "another number of heads": _other_heads,
    "another window": _of(_Windowed),
    "a constant of the depth behind the layers": _scaled_by_depth,
}


@pytest.mark.parametrize("name", IRREGULAR)
def test_an_irregular_model_is_never_stamped_wrong(name: str) -> None:
    class Irregular(LlamaForCausalLM):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            if config.num_hidden_layers > ODD or name in EVERY_DEPTH:
                IRREGULAR[name](self.model)

    session = replace(open_session(llama()), model_class=Irregular)
    with pytest.raises(NotStamped):
        stamped_content(session, canonical(session.config.to_dict()))


#: Changes that do not name one layer.
EVERY_DEPTH = {name for name, change in IRREGULAR.items() if change is _scaled_by_depth or change.__qualname__.startswith("_of.")}


def test_a_last_layer_that_differs_is_stamped_last() -> None:
    class Model(LlamaForCausalLM):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            _of(_KnowsTheLast)(self.model)

    assert stamped_beside_whole(replace(open_session(llama()), model_class=Model)) == ""


class _OwnRotary(LlamaDecoderLayer):
    """Each layer has a rotary embedding of its own, a buffer of the same shape in all."""

    def forward(self, hidden_states: torch.Tensor, position_ids: Any = None, position_embeddings: Any = None, **kwargs: Any) -> Any:
        made = self.rotary_emb(hidden_states, position_ids)
        return super().forward(hidden_states, position_ids=position_ids, position_embeddings=made, **kwargs)


def test_another_rotary_base_is_the_constant_of_its_layer() -> None:
    class Model(LlamaForCausalLM):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            for i, layer in enumerate(self.model.layers):
                own = copy.deepcopy(config)
                own.rope_parameters["rope_theta"] = 500.0 if i == ODD else 10000.0
                layer.__class__, layer.rotary_emb = _OwnRotary, LlamaRotaryEmbedding(own)

    session = replace(open_session(llama()), model_class=Model)
    stamped = stamped_content(session, canonical(session.config.to_dict()))
    tables = {name: value for name, value in stamped.constants["decode"].items() if name.endswith("rotary_emb.inv_freq")}
    odd = tables.pop(f"model.layers.{ODD}.rotary_emb.inv_freq")
    assert len(tables) == DEPTH - 1 and all(torch.equal(each, tables["model.layers.0.rotary_emb.inv_freq"]) for each in tables.values())
    assert not torch.equal(odd, tables["model.layers.0.rotary_emb.inv_freq"])
    assert torch.allclose(odd, 500.0 ** -(torch.arange(0, 8, 2) / 8))


def test_another_number_of_experts_is_traced_whole() -> None:
    class Model(Qwen2MoeForCausalLM):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            if config.num_hidden_layers == 12:
                config.num_experts *= 2
                self.model.layers[ODD].mlp = Qwen2MoeSparseMoeBlock(config)
                config.num_experts //= 2

    session = replace(open_session(moe()), model_class=Model)
    with pytest.raises(NotStamped, match=f"layers.{ODD} is like none"):
        stamped_content(session, {})


def test_sub_graphs_are_refused_after_one_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(llama())
    found: list[Any] = []

    def traced(*_: Any) -> Any:
        found.append(1)
        return SimpleNamespace(document={"components": [{"companion": "c"}]}, entries={"c": b'{"subgraphs": {"body": {}}}'})

    monkeypatch.setattr(stamping, "_traced", traced)
    with pytest.raises(NotStamped, match="sub-graphs"):
        stamped_content(session, {})
    assert len(found) == 1


def test_experts_in_some_layers_are_traced_whole_or_stamped_right() -> None:
    session = open_session(moe(mlp_only_layers=[4]))
    try:
        assert stamped_beside_whole(session) == ""
    except NotStamped as error:
        assert "mlp" in str(error) or "layers" in str(error)


def test_the_deepest_layers_decide() -> None:
    """The last layer is in every shallow model."""
    kinds = ["a"] * 11 + ["b"]
    assert all(11 in selection[12] for series in selections({12: kinds})[:1] for selection in series)


def test_every_transition_between_kinds_is_traced() -> None:
    kinds = (["s"] * 5 + ["f"]) * 4
    second = selections({24: kinds})[0][0][24]
    pairs = {(kinds[a], kinds[b]) for a, b in zip(second[1:], second[2:], strict=False)}
    assert pairs == {("s", "s"), ("s", "f"), ("f", "s")}


def test_exports_of_a_stamped_capture_have_the_nodes_of_a_whole_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = LlamaForCausalLM(llama())
    model.save_pretrained(tmp_path / "model")
    graphs = []
    for way, chosen in (("stamped", []), ("whole", ["--trace", "whole"])):
        assert main(["--model", str(tmp_path / "model"), *chosen, "-o", str(tmp_path / f"{way}.capture")]) == 0
        argosy_run("export", "onnx", "--model", tmp_path / "model", "--capture", tmp_path / f"{way}.capture", "--check", "off",
                   "-o", tmp_path / way)  # fmt: skip
        graphs.append(_without_names(tmp_path / way / "decode.onnx"))
    assert "tracing 3 of 8 layers" in capsys.readouterr().err
    assert graphs[0] == graphs[1] and len(graphs[0]) > 400


def argosy_run(*arguments: str | Path) -> None:
    program = os.environ.get("ARGOSY_BIN", Path(__file__).parents[2] / "build/release/apps/cli/argosy")
    subprocess.run([str(each) for each in (program, *arguments)], check=True, capture_output=True)


def _without_names(path: Path) -> list[tuple]:
    """The nodes of an ONNX graph in order, with values numbered as they occur; weights are what they hold or where."""
    graph = onnx.load(path, load_external_data=False).graph
    numbers: dict[str, int] = {each.name: i for i, each in enumerate(graph.input)}
    held = {each.name: (tuple(each.dims), each.raw_data or each.name) for each in graph.initializer}

    def known(name: str) -> Any:
        return held.get(name, numbers.setdefault(name, len(numbers)))

    return [
        (node.op_type, [known(each) for each in node.input], [known(each) for each in node.output],
         [each.SerializeToString() for each in node.attribute if each.type != onnx.AttributeProto.GRAPH])
        for node in graph.node
    ]  # fmt: skip


def test_shapes_that_are_remembered_are_those_of_a_run() -> None:
    shapes = RememberedShapes()
    x, y = torch.empty(3, 4, device="meta"), torch.empty(4, 5, device="meta").t()
    for _ in range(2):
        with ShapesOnly(shapes):
            made = [x @ y.t(), x.t() + 1, x.to(torch.float16), x.sum(0), x.t(), torch.ones(2)]
        assert [(each.shape, each.stride(), each.dtype) for each in made] == [
            ((3, 5), (5, 1), torch.float32), ((4, 3), (1, 4), torch.float32), ((3, 4), (4, 1), torch.float16),
            ((4,), (1,), torch.float32), ((4, 3), (1, 4), torch.float32), ((2,), (1,), torch.float32)]  # fmt: skip
    assert made[4]._base is x and torch.equal(made[5], torch.ones(2)), "views and values are not remembered"
    assert len(shapes.known) >= 4


@compile_compatible_method_lru_cache(maxsize=4)
def _remembered_inside(width: int, device: str) -> torch.Tensor:
    return torch.ones(width, device=device)


@functools.lru_cache
def _remembered(width: int, device: str) -> torch.Tensor:
    return torch.ones(width, device=device)


class _AddsRemembered(LlamaDecoderLayer):
    def forward(self, hidden_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        key = hidden_states.shape[-1], str(hidden_states.device)
        return super().forward(hidden_states, *args, **kwargs) + _remembered(*key) + _remembered_inside(*key)


def test_results_that_code_remembers_are_made_in_each_run() -> None:
    model = weightless.build_on_meta(LlamaForCausalLM, llama())
    _of(_AddsRemembered)(model.model)
    ids = torch.ones(2, 5, dtype=torch.long, device="meta")

    def run(by: Any) -> Any:
        with ShapesOnly(by):
            return {"logits": model(input_ids=ids).logits}

    calls = CallsOfLayers()
    first, second = (calls(model, ["model.layers"], {"input_ids": ids}, run) for _ in range(2))
    assert first == second and len(set(first.values())) == 3, "outside, the first layer, which makes it, and the others"


def test_numbers_that_only_training_reads_make_no_kinds() -> None:
    model = weightless.build_on_meta(LlamaForCausalLM, llama())
    for i, layer in enumerate(model.model.layers):
        layer.mlp.drop_prob = i / 10
    assert len(set(described(model, "model.layers", set()))) == 1
    model.model.layers[ODD].mlp.scale = 0.5
    assert len(set(described(model, "model.layers", set()))) == 2


def test_few_layers_are_traced_whole() -> None:
    with pytest.raises(NotStamped, match="few layers") as raised:
        stamped_content(open_session(llama(num_hidden_layers=4)), {})
    assert not raised.value.tried


@pytest.mark.parametrize("error", [NotStamped("for a reason"), RuntimeError("for a reason\nat length")])
def test_what_cannot_be_stamped_is_traced_whole(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(stamping, "stamped_content", refuse)
    LlamaForCausalLM(llama(num_hidden_layers=2)).config.save_pretrained(tmp_path)
    assert main(["--model", str(tmp_path), "-o", str(tmp_path / "x.capture")]) == 0
    assert "tracing all layers: for a reason\n" in capsys.readouterr().err
    assert (tmp_path / "x.capture").stat().st_size > 10000


def test_functions_that_are_looked_up_whole_keep_values_and_what_they_write() -> None:
    """A function is one call only where no value can be known, and writes nothing."""
    weight = torch.empty(4, 4, device="meta")
    seen: list[Any] = []

    def run(function: Any, args: tuple, kwargs: dict) -> Any:
        seen.append(function)
        return function(*args, **kwargs)

    with ShapesOnly(run), torch.no_grad():
        known = torch.arange(3, device="meta").mul(2).add(1)
        assert known.tolist() == [1, 3, 5]
        seen.clear()
        torch.nn.functional.linear(torch.empty(2, 4, device="meta"), weight)
        target = torch.empty(8, 4, device="meta")
        assert torch.cat([weight, weight], out=target) is target
    assert torch.nn.functional.linear in seen and torch.cat not in seen and torch.ops.aten.mm.default not in seen
