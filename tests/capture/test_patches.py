"""Every patch of a trace is still needed: without it, a capture of some model fails or is wrong.

When a test here fails, the installed transformers (or torch) no longer needs the patch: remove it, or narrow its versions.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from captured import capture, differences, twin_config, writes_in_place  # noqa: E402

from argosy import patching  # noqa: E402
from argosy.capture import patches  # noqa: E402, F401 - registers them
from argosy.capture.components import Shape  # noqa: E402

#: name of a patch's factory, or of a model patch: a model that needs it
NEEDED_BY = {
    "_remember_state": "mamba",
    "_mask_new_tokens": "mamba",
    "_selective_scan_from_state": "mamba",
    "_new_conv_state": "mamba2",
    "_new_recurrent_state": "mamba2",
    "_forget_state": None,
    "_delta_rule_by_token": None,
    "_state_space_by_token": None,
    "_rwkv_by_token": "rwkv",
    "_rwkv_own_states": "rwkv",
    "_rwkv_weights_as_saved": None,
    "_rwkv_rescaled_outputs": None,
    "_lightning_by_token": "minimax",
    "_linear_unit_from_state": "recurrent_gemma",
    "_places_by_arithmetic": "funnel",
    "_bags_as_rows": None,
    "every_expert": None,
    "_padded_one_by_one": None,
    "_indices_that_broadcast": None,
    "_no_transform": None,
    "_none_where_nothing_is_hidden": None,
    "_shifted_by_index": None,
    "_symbol_or_integer": None,
    "_padding_by_arithmetic": None,
    "integer_padding": "encodec",
    "rotary_by_length": None,
    "unchecked_placeholders": None,
}
#: patches that no single capture shows the need of
BECAUSE = {
    "_delta_rule_by_token": "without it a model takes minutes: test_the_delta_rule_is_unrolled traces the function alone",
    "_state_space_by_token": "without it graphs are right and slow: test_a_state_space_is_computed_token_by_token",
    "_forget_state": "undoes what _remember_state notes, for models that are called without a cache afterwards",
    "_rwkv_weights_as_saved": "weights of twins are divided already: test_recurrent.test_weights_of_rwkv_are_those_saved",
    "_rwkv_rescaled_outputs": "the same",
    "every_expert": "test_loops_over_experts_go_over_all traces such a loop alone",
    "_bags_as_rows": "test_bags_of_one_size_are_rows traces a bag alone",
    "_padded_one_by_one": "test_sequences_are_padded_one_by_one traces such a call alone",
    "_indices_that_broadcast": "test_masks_of_own_functions_can_be_written traces such a mask alone",
    "_no_transform": "the same",
    "_none_where_nothing_is_hidden": "test_no_mask_is_made_where_nothing_is_hidden traces such a call alone",
    "_shifted_by_index": "without it torch takes minutes over sizes: test_pictures.test_funnel_shifts_as_its_code_does",
    "_symbol_or_integer": "without it pictures have one size: test_pictures.test_sizes_stay_symbols_in_the_code_of_models",
    "_padding_by_arithmetic": "the same: test_pictures.test_padding_of_mobilenets_depends_on_no_branch",
    "rotary_by_length": "test_rotary.test_the_patch_is_needed",
    "unchecked_placeholders": "changes nothing from transformers 5 on, and is for versions before",
}
SHAPES = [Shape(2, 5, 7, 2), Shape(2, 70, 3, 3)]


def registered() -> dict[str, list]:
    found: dict[str, list] = {}
    for patch in patching.registered_patches("capture"):
        if not patching.versions_match(patch.versions):
            continue  # another version needs it: it is tested there
        found.setdefault(patch.factory.__name__, []).append(patch)
    for patch in patching.registered_model_patches("capture"):
        found.setdefault(patch.change.__name__, []).append(patch)
    return found


def test_every_patch_is_listed_and_has_a_reason():
    assert set(registered()) == set(NEEDED_BY)
    assert all(patch.reason for each in registered().values() for patch in each)
    assert {name for name, family in NEEDED_BY.items() if family is None} == set(BECAUSE)


@pytest.mark.thorough  # versions are pinned: run it when they change
@pytest.mark.parametrize("name", [name for name, family in NEEDED_BY.items() if family])
def test_patch_is_needed(name, tmp_path, monkeypatch):
    others = [patch for patch in patching.registered_patches("capture") if patch.factory.__name__ != name]
    monkeypatch.setitem(patching._PATCHES, "capture", others)
    models = [patch for patch in patching.registered_model_patches("capture") if patch.change.__name__ != name]
    monkeypatch.setitem(patching._MODEL_PATCHES, "capture", models)
    try:
        session, graphs = capture(twin_config(NEEDED_BY[name]), tmp_path)
    except Exception:  # noqa: BLE001 - it cannot even be traced
        return
    wrong = writes_in_place(session) or differences(session, graphs, SHAPES)
    assert wrong, f"a capture of {NEEDED_BY[name]} is right without {name}"


def test_the_delta_rule_is_unrolled():
    import transformers.models.olmo_hybrid.modeling_olmo_hybrid as modeling

    class Rule(torch.nn.Module):
        def forward(self, x, g):
            return modeling.torch_chunk_gated_delta_rule(x, x, x, g, g, chunk_size=16)[0]

    def nodes() -> int:
        inputs = (torch.rand(1, 37, 2, 4), -torch.rand(1, 37, 2))
        shapes = ({1: torch.export.Dim.AUTO}, {1: torch.export.Dim.AUTO})
        return len(torch.export.export(Rule(), inputs, dynamic_shapes=shapes, strict=False).graph.nodes)

    without = nodes()
    with patching.apply_patches("capture"):
        assert nodes() < 40
    assert without > 100, "transformers no longer unrolls it"


def test_loops_over_experts_go_over_all():
    class Experts(torch.nn.Module):
        num_experts = 3

        def forward(self, hidden_states, top_k_index, top_k_weights):
            result = torch.zeros_like(hidden_states)
            mask = torch.nn.functional.one_hot(top_k_index, num_classes=self.num_experts + 1).permute(2, 1, 0)
            for expert in torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero():
                expert = expert[0]
                if expert == self.num_experts:
                    continue
                place, token = torch.where(mask[expert])
                result.index_add_(0, token, hidden_states[token] * (expert + 2) * top_k_weights[token, place, None])
            return result

    model = Experts()
    inputs = torch.rand(5, 4), torch.tensor([[0, 2], [2, 0], [0, 3], [2, 3], [0, 2]]), torch.rand(5, 2)
    with pytest.raises(Exception, match="data-dependent"):
        torch.export.export(model, inputs, strict=False)
    expected = model(*inputs)
    with patching.apply_patches("capture", model):
        program = torch.export.export(model, inputs, dynamic_shapes=tuple({0: torch.export.Dim.AUTO} for _ in inputs), strict=False)
    torch.testing.assert_close(program.module()(*inputs), expected)
    others = torch.rand(7, 4), torch.randint(0, 3, (7, 2)), torch.rand(7, 2)
    torch.testing.assert_close(program.module()(*others), model(*others))


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_one_size_are_rows(mode):
    class Bags(torch.nn.Module):
        def forward(self, index, table, weights):
            return torch.nn.functional.embedding_bag(index, table, mode=mode, per_sample_weights=weights if mode == "sum" else None)

    def ops() -> set[str]:
        return {str(node.target) for node in torch.export.export(Bags(), inputs, strict=False).graph.nodes}

    inputs = torch.tensor([[0, 3], [2, 2], [4, 1]]), torch.rand(5, 4), torch.rand(3, 2)
    expected = Bags()(*inputs)
    assert any("embedding_bag" in op for op in ops()), "torch no longer has an op for it"
    with patching.apply_patches("capture"):
        torch.testing.assert_close(Bags()(*inputs), expected)
        assert not any("embedding_bag" in op for op in ops())


@pytest.mark.parametrize("batch_first", [True, False])
def test_sequences_are_padded_one_by_one(batch_first):
    class Padded(torch.nn.Module):
        def forward(self, x, y):
            return torch.nn.utils.rnn.pad_sequence([x, y, x[:2]], batch_first=batch_first, padding_value=0.5)

    def ops() -> set[str]:
        shapes = ({0: torch.export.Dim.AUTO}, {0: torch.export.Dim.AUTO})
        return {str(node.target) for node in torch.export.export(Padded(), inputs, dynamic_shapes=shapes, strict=False).graph.nodes}

    inputs = torch.rand(4, 3), torch.rand(7, 3)
    expected = Padded()(*inputs)
    assert any("pad_sequence" in op for op in ops()), "torch no longer has an op for it"
    with patching.apply_patches("capture"):
        assert torch.equal(Padded()(*inputs), expected)
        assert not any("pad_sequence" in op for op in ops())


def test_no_mask_is_made_where_nothing_is_hidden():
    from transformers import LlamaConfig, masking_utils

    seen = []

    class Encoder(torch.nn.Module):
        def forward(self, x):
            config = LlamaConfig()
            config._attn_implementation = "sdpa"
            seen.append(masking_utils.create_bidirectional_mask(config=config, inputs_embeds=x, attention_mask=None))
            return x + 1

    Encoder()(torch.rand(2, 5, 4))
    torch.export.export(Encoder(), (torch.rand(2, 5, 4),), strict=False)
    with patching.apply_patches("capture"):
        torch.export.export(Encoder(), (torch.rand(2, 5, 4),), strict=False)
    eager, traced, patched = seen
    assert eager is None and traced is not None and patched is None


def test_masks_of_own_functions_can_be_written():
    import io

    from transformers import masking_utils

    class Mask(torch.nn.Module):
        def forward(self, x):
            def alike(batch, head, query, key):
                return kinds[batch, query] == kinds[batch, key]

            kinds = x[..., 0] > 0.5
            return masking_utils.sdpa_mask(
                batch_size=x.shape[0], q_length=x.shape[1], kv_length=x.shape[1], mask_function=alike,
                allow_is_causal_skip=False, use_vmap=True,
            )  # fmt: skip

    x = torch.rand(2, 7, 4)

    def write() -> None:
        program = torch.export.export(Mask(), (x,), dynamic_shapes=({0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO},), strict=False)
        torch.export.save(program, io.BytesIO())

    expected = Mask()(x)
    with pytest.raises(Exception, match="flat_apply|serializ"):
        write()
    with patching.apply_patches("capture"):
        assert torch.equal(Mask()(x), expected) and expected.shape == (2, 1, 7, 7)
        write()


def test_a_state_space_is_computed_token_by_token():
    """The same numbers, and one token costs one: transformers fills texts up to whole chunks."""
    import transformers.models.mamba2.modeling_mamba2 as modeling

    class Space(torch.nn.Module):
        def forward(self, x, dt, b, c, state):
            rest = {"D": torch.tensor([0.5, 2.0]), "dt_bias": torch.tensor([0.1, 0.2]), "initial_states": state}
            rest |= {"dt_softplus": True, "dt_limit": (0.2, 0.9), "return_final_states": True}
            return modeling.mamba2_chunk_scan(x, dt, -torch.tensor([0.3, 1.5]), b, c, chunk_size=64, **rest)

    def inputs(tokens: int) -> tuple:
        torch.manual_seed(0)
        shapes = [(2, tokens, 2, 4), (2, tokens, 2), (2, tokens, 1, 8), (2, tokens, 1, 8), (2, 2, 4, 8)]
        return tuple(torch.randn(shape) for shape in shapes)

    def largest() -> int:
        graph = torch.export.export(Space(), inputs(1), strict=False).graph
        values = [node.meta.get("val") for node in graph.nodes]
        return max(each.numel() for each in values if isinstance(each, torch.Tensor))

    expected, without = Space()(*inputs(70)), largest()
    with patching.apply_patches("capture"):
        torch.testing.assert_close(Space()(*inputs(70)), expected)
        assert largest() <= 2 * 2 * 4 * 8
    assert without >= 64 * 2 * 2 * 8, "transformers no longer computes whole chunks for one token"


def test_everything_is_restored():
    import transformers.cache_utils as cache_utils
    import transformers.models.mamba.modeling_mamba as modeling_mamba

    def attributes():
        return cache_utils.Cache.get_recurrent_state, modeling_mamba.mamba_selective_scan

    before = attributes()
    with patching.apply_patches("capture") as applied:
        assert {patch.factory.__name__ for patch in applied} >= {"_remember_state", "_selective_scan_from_state"}
        assert attributes() != before
    assert attributes() == before
