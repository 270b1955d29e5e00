"""The observer on real calls: what it records, what it infers, and that it leaves modules alone."""

from __future__ import annotations

import re
import sys

import pytest
import torch
from transformers import (
    JambaConfig,
    JambaForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from argosy import ExportError
from argosy.exporters.pytrees import register_cache_pytrees_for_model
from argosy.observer import InputObserver

DYNAMIC = torch.export.Dim.DYNAMIC


@pytest.fixture(scope="module")
def llama() -> torch.nn.Module:
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=50,
    )
    model = LlamaForCausalLM(config).eval()
    # torch.export takes caches whose classes pytree knows.
    register_cache_pytrees_for_model(model)
    return model


def generate(model: torch.nn.Module, batch: int, length: int, new: int = 3) -> None:
    """A batch whose first row is padded on the left, so that the mask matters and is passed on."""
    ids = torch.randint(3, 50, (batch, length), generator=torch.Generator().manual_seed(length))
    mask = torch.ones_like(ids)
    mask[0, :2] = 0
    model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=new, do_sample=False)


def text(observer: InputObserver, **options) -> dict[str, str]:
    dimensions = observer.infer_dimensions(**options)
    return {name: ", ".join(map(str, axes.values())) for name, axes in dimensions.items()}


class Add(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        return x * self.scale if y is None else self.both(x, y)

    def both(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * self.scale + y


# ---- recording ----


def test_records_before_and_after_the_call():
    class InPlace(torch.nn.Module):
        def forward(self, x):
            return x.add_(1)

    module, observer = InPlace(), InputObserver()
    x = torch.zeros(3)
    with observer(module):
        result = module(x)
    result.add_(5)
    assert torch.equal(observer.calls[0].leaves["x"], torch.zeros(3))
    assert torch.equal(observer.calls[0].outputs, torch.ones(3))


def test_keeps_the_first_calls_of_each_block():
    module, observer = Add(), InputObserver()
    for _ in range(2):
        with observer(module, store_n_calls=2):
            for size in (3, 4, 5):
                module(torch.zeros(size))
    assert [call.shapes["x"] for call in observer.calls] == [(3,), (4,), (3,), (4,)]


def test_other_method():
    module, observer = Add(), InputObserver()
    with observer(module, method_name="both"):
        module(torch.zeros(3), torch.zeros(3))
        module(torch.zeros(3))
    assert len(observer) == 1
    assert list(observer.calls[0].leaves) == ["x", "y"]


def test_module_is_unchanged_also_after_an_exception():
    module, observer = Add(), InputObserver()
    before = dict(vars(module))
    call = torch.nn.Module.__call__
    with pytest.raises(RuntimeError), observer(module), InputObserver():
        module(torch.zeros(3), torch.zeros(4))
    assert vars(module) == before and torch.nn.Module.__call__ is call
    assert len(observer) == 0


def test_own_forward_is_restored():
    module, observer = Add(), InputObserver()
    own = module.forward = lambda x: x
    with observer(module):
        module(torch.zeros(3))
    assert module.forward is own


def test_plain_with_takes_the_outermost_module():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), Add())
    with InputObserver() as observer:
        model(torch.zeros(2, 4))
        model(torch.zeros(3, 4))
    assert observer.module is model and len(observer) == 2


def test_plain_with_takes_the_module_that_owns_the_others():
    config = T5Config(
        d_model=16, d_ff=32, num_layers=1, num_heads=2, d_kv=8, vocab_size=50, decoder_start_token_id=0, pad_token_id=0
    )
    model = T5ForConditionalGeneration(config).eval()
    encoder, decoder = InputObserver(), InputObserver()
    with InputObserver() as observer, encoder(model.encoder), decoder(model.decoder):
        generate(model, 2, 6)
    assert observer.module is model
    assert (len(observer), len(encoder), len(decoder)) == (3, 1, 3)
    names = list(decoder.infer_dimensions())
    assert "past_key_values.0.decoder.key" in names and "past_key_values.0.encoder.value" in names


def test_one_observer_one_module():
    observer = InputObserver()
    with observer(Add()) as same:
        assert same is observer
    with pytest.raises(ExportError, match="has calls of Add.forward"), observer(Add()):
        pass
    with pytest.raises(ExportError, match="no torch.nn.Module"), InputObserver()(abs):
        pass


def test_nothing_observed():
    with pytest.raises(ExportError, match="no call was observed"):
        InputObserver().infer_arguments()


# ---- inference ----


def test_dimensions_of_a_decoder(llama):
    observer = InputObserver()
    for batch, length in ((2, 7), (3, 11)):
        with observer(llama):
            generate(llama, batch, length)
    dimensions = text(observer)
    assert dimensions["input_ids"] == "batch, sequence"
    assert dimensions["attention_mask"] == "batch, past_sequence + sequence"
    assert dimensions["past_key_values.1.value"] == "batch, 2, past_sequence, 4"


def test_export_of_what_generate_does(llama):
    """One graph made from the inferred arguments serves prefill and decode."""
    observer = InputObserver()
    with observer(llama):
        generate(llama, 2, 7)
    batched = {"set_batch_dimension_for": True}
    arguments = observer.infer_arguments(**batched)
    assert arguments["input_ids"].shape[1] >= 2 and arguments["past_key_values"].get_seq_length() >= 2
    shapes = observer.infer_dynamic_shapes(**batched)
    assert shapes["past_key_values"] == [{0: DYNAMIC, 2: DYNAMIC}] * 4
    program = torch.export.export(llama, (), kwargs=arguments, dynamic_shapes=shapes)
    with observer(llama):
        generate(llama, 3, 12)
    rows = observer.check_discrepancies(program)
    assert [row["ok"] for row in rows] == [True] * 6, rows
    assert max(row["abs"] for row in rows) < 1e-5


def test_wrong_program_is_found(llama):
    observer = InputObserver()
    with observer(llama):
        generate(llama, 2, 7)
    assert all(row["ok"] for row in observer.check_discrepancies(llama))
    weight = llama.model.layers[1].self_attn.k_proj.weight
    with torch.no_grad():
        weight[0, 0] += 0.5
    try:
        rows = observer.check_discrepancies(llama)
    finally:
        with torch.no_grad():
            weight[0, 0] -= 0.5
    assert not any(row["ok"] for row in rows)
    assert rows[0]["abs"] > 1e-3 and rows[0][">0.01"] > 0


def test_hybrid_cache():
    config = JambaConfig(
        vocab_size=50,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=1,
        attn_layer_period=2,
        attn_layer_offset=1,
        num_experts=2,
        mamba_d_state=4,
        mamba_dt_rank=4,
        use_mamba_kernels=False,
    )
    model = JambaForCausalLM(config).eval()
    observer = InputObserver()
    for batch, length in ((2, 7), (3, 9)):
        with observer(model):
            generate(model, batch, length)
    dimensions = text(observer)
    growing = [name for name in dimensions if name.startswith("past") and "key" in name.split(".") and "1" in name]
    assert [dimensions[name] for name in growing] == ["batch, 1, past_sequence, 8"]
    # Older versions keep empty states for the layers that have none; layer 0 has some in all of them.
    states = [name for name in dimensions if name.endswith(".0") and re.search("conv|recurrent|ssm", name)]
    assert states and all(dimensions[name].startswith("batch, 32") for name in states), dimensions
    assert all(row["ok"] for row in observer.check_discrepancies(model))


def test_legacy_tuple_of_caches():
    class Legacy(torch.nn.Module):
        def forward(self, ids, past=None):
            size = ids.shape[1] + (past[0][0].shape[2] if past else 0)
            return ids.sum() + size, past

    module, observer = Legacy(), InputObserver()
    with observer(module, store_n_calls=4):
        for length in (3, 4, 6):
            layer = torch.zeros(2, 4, length, 8)
            module(ids=torch.zeros(2, 5), past=((layer, layer.clone()), (layer.clone(), layer.clone())))
        module(ids=torch.zeros(2, 5))
    shapes = observer.infer_dynamic_shapes()
    assert shapes == {"ids": {}, "past": (({2: DYNAMIC},) * 2,) * 2}


def test_positional_and_named_arguments(tmp_path):
    module, observer = Add(), InputObserver()
    with observer(module):
        module(torch.zeros(3), torch.zeros(3))
        module(torch.zeros(4), torch.zeros(4))
    assert observer.infer_dynamic_shapes() == ({0: DYNAMIC}, {0: DYNAMIC})
    arguments = observer.infer_arguments()
    program = torch.export.export(module, arguments, dynamic_shapes=observer.infer_dynamic_shapes())
    assert all(row["ok"] for row in observer.check_discrepancies(program))
    torch.export.save(program, tmp_path / "add.pt2")
    assert all(row["ok"] for row in observer.check_discrepancies(tmp_path / "add.pt2"))
    with observer(module):
        module(torch.zeros(5), y=torch.zeros(5))
    assert list(observer.infer_arguments()) == ["x", "y"]
    args, kwargs = observer.infer_arguments(as_args_kwargs=True)
    assert args == () and list(kwargs) == ["x", "y"]


class Images(torch.nn.Module):
    def forward(self, ids, pixel_values=None, past=None):
        total = ids.float().sum()
        return total if pixel_values is None else total + pixel_values.sum()


def test_missing_arguments():
    module = Images()
    given = InputObserver(missing={"pixel_values": torch.empty(0, 3, 4, 4)})
    none = InputObserver()
    with given(module), none(module):
        module(ids=torch.zeros(1, 5), pixel_values=torch.ones(1, 3, 4, 4))
        module(ids=torch.zeros(1, 1), past=torch.ones(1, 2, 5, 2))
        module(ids=torch.zeros(1, 1), past=torch.ones(1, 2, 6, 2))
    assert given.infer_dynamic_shapes() == {"ids": {1: DYNAMIC}, "pixel_values": {0: DYNAMIC}, "past": {2: DYNAMIC}}
    assert none.infer_dynamic_shapes() == {"ids": {1: DYNAMIC}, "pixel_values": {}, "past": {2: DYNAMIC}}
    assert given.infer_arguments(2)["pixel_values"].shape == (0, 3, 4, 4)
    assert none.infer_arguments(2)["pixel_values"].shape == (0, 3, 4, 4)
    assert none.infer_arguments(0)["pixel_values"].shape == (1, 3, 4, 4)
    # torch.export would take a size of 0 for a constant.
    assert given.infer_arguments()["pixel_values"].shape[0] >= 2
    assert given.infer_arguments(enlarge=False)["pixel_values"].shape[0] == 1


def test_call_without_its_cache_has_no_past(llama):
    observer = InputObserver()
    with observer(llama, store_n_calls=2):
        generate(llama, 2, 7)
    assert text(observer)["past_key_values.0.key"] == "2, 2, past_sequence, 4"
    assert text(observer)["attention_mask"] == "2, past_sequence + sequence"


def test_batch_of_one_is_made_dynamic():
    module, observer = Add(), InputObserver()
    with observer(module):
        module(x=torch.ones(1, 3), y=torch.ones(1, 3))
        module(x=torch.ones(1, 4), y=torch.ones(1, 4))
    assert text(observer) == {"x": "1, x_1", "y": "1, x_1"}
    assert observer.infer_dynamic_shapes(set_batch_dimension_for=["y"]) == {
        "x": {1: DYNAMIC},
        "y": {0: DYNAMIC, 1: DYNAMIC},
    }
    arguments = observer.infer_arguments(set_batch_dimension_for=True)
    shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True)
    program = torch.export.export(module, (), kwargs=arguments, dynamic_shapes=shapes)
    assert program.module()(x=torch.ones(5, 6), y=torch.ones(5, 6)).shape == (5, 6)
    with pytest.raises(ExportError, match="names z"):
        observer.infer_dynamic_shapes(set_batch_dimension_for={"z"})


def test_ranks_that_differ():
    module, observer = Add(), InputObserver()
    with observer(module):
        module(torch.zeros(3))
        module(torch.zeros(3, 3))
    with pytest.raises(ExportError, match="cannot share one graph"):
        observer.infer_dynamic_shapes()


# ---- discrepancies ----


def test_rows_say_what_is_wrong(tmp_path):
    module, observer = Add(), InputObserver()
    with observer(module):
        module(torch.tensor([1.0, 2.0]))
    (row,) = observer.check_discrepancies(lambda x: 2 * x + torch.tensor([0.0, 0.05]))
    assert (
        not row["ok"] and row["abs"] == pytest.approx(0.05, rel=1e-4) and row["rel"] == pytest.approx(0.0125, rel=1e-4)
    )
    assert row[">0.1"] == 0 and row[">0.01"] == 0.5
    (row,) = observer.check_discrepancies(lambda x: 2 * x + torch.tensor([0.0, 0.05]), atol=0.1)
    assert row["ok"]
    (row,) = observer.check_discrepancies(lambda x: 2 * x * torch.tensor([1.0, float("nan")]))
    assert not row["ok"] and row["abs"] == float("inf")
    (row,) = observer.check_discrepancies(lambda x: x[:1])
    assert not row["ok"] and "shape (1,) instead of (2,)" in row["error"]
    (row,) = observer.check_discrepancies(lambda x: (x, x))
    assert not row["ok"] and "2 outputs" in row["error"]
    (row,) = observer.check_discrepancies(lambda x: x / undefined)  # noqa: F821
    assert not row["ok"] and row["error"].startswith("NameError")
    with pytest.raises(ExportError, match="does not exist"):
        observer.check_discrepancies(tmp_path / "absent.pt2")
    with pytest.raises(ExportError, match="cannot be run"):
        observer.check_discrepancies(3)


def test_equal_nans_and_infinities_agree():
    module, observer = Add(), InputObserver()
    values = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0])
    with observer(module):
        module(values)
    (row,) = observer.check_discrepancies(module)
    assert row["ok"] and row["abs"] == 0.0


def add_onnx(path, second: str) -> None:
    """``x * 2 + y`` as an ONNX file; `second` is the name of its other input."""
    import onnx

    kind = onnx.TensorProto.FLOAT
    nodes = [
        onnx.helper.make_node("Add", ["x", "x"], ["twice"]),
        onnx.helper.make_node("Add", ["twice", second], ["z"]),
    ]
    inputs = [onnx.helper.make_tensor_value_info(name, kind, ["n"]) for name in ("x", second)]
    graph = onnx.helper.make_graph(nodes, "add", inputs, [onnx.helper.make_tensor_value_info("z", kind, ["n"])])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10), path)


@pytest.mark.parametrize("second", ["y", "other"])
def test_onnx_file(tmp_path, second):
    """Inputs are found by name, else by position; a call without one of them gets the value for missing ones."""
    pytest.importorskip("onnxruntime", reason="runs ONNX files; the development setup has no need of it otherwise")
    observer = InputObserver(missing={"y": torch.zeros(3)})
    module = Add()
    with observer(module):
        module(x=torch.ones(4), y=torch.ones(4))
        module(x=torch.ones(3))
    add_onnx(tmp_path / "add.onnx", second)
    rows = observer.check_discrepancies(tmp_path / "add.onnx")
    assert [row["ok"] for row in rows] == [True, True], rows
    with torch.no_grad():
        module.scale.mul_(2)
    with observer(module):
        module(x=torch.ones(4), y=torch.ones(4))
    assert not observer.check_discrepancies(tmp_path / "add.onnx")[2]["ok"]


def test_onnx_file_without_onnxruntime(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    observer = InputObserver()
    module = Add()
    with observer(module):
        module(torch.ones(4))
    (tmp_path / "add.onnx").touch()
    with pytest.raises(ExportError, match="onnxruntime is not installed"):
        observer.check_discrepancies(tmp_path / "add.onnx")
