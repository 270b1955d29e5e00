"""What the merge of features with text hands over to the language model."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from argosy.capture.multimodal_cut import Form, Recording  # noqa: E402
from argosy.capture.multimodal_merge import extra_outputs  # noqa: E402


class Language(torch.nn.Module):
    def forward(self, inputs_embeds=None, per_layer=None):
        return inputs_embeds.sum() + per_layer.sum()


class Model(torch.nn.Module):
    """A model that makes a second embedding of each token, which it can't make of the first."""

    config = SimpleNamespace(is_encoder_decoder=False)

    def __init__(self, refuses: bool):
        super().__init__()
        self.first, self.second = torch.nn.Embedding(9, 4), torch.nn.Embedding(9, 3)
        self.language_model = Language()
        self.refuses = refuses

    def get_decoder(self):
        return self.language_model

    def forward(self, input_ids=None, inputs_embeds=None, per_layer=None):
        if inputs_embeds is None:
            inputs_embeds, per_layer = self.first(input_ids), self.second(input_ids)
        if per_layer is None and self.refuses:
            raise RuntimeError("whose embeddings are these?")
        if per_layer is None:
            per_layer = torch.zeros(*inputs_embeds.shape[:2], 3)
        return self.language_model(inputs_embeds=inputs_embeds, per_layer=per_layer)


@pytest.mark.parametrize("refuses", [True, False])
def test_a_model_that_can_make_nothing_of_embeddings_is_given_the_rest(refuses):
    model = Model(refuses)
    ids = torch.tensor([[1, 2, 5]])
    with torch.no_grad():
        received = {"inputs_embeds": model.first(ids), "per_layer": model.second(ids)}
        extras, along = extra_outputs(model, Recording(received=received), {})
    assert extras == ["per_layer"]
    assert along == (["per_layer"] if refuses else [])


def test_a_mask_of_features_has_their_rows():
    recording = Recording()
    features, mask = torch.rand(2, 3, 4), torch.tensor([[True, True, False], [True, False, False]])
    recording.keep("audio", "pooler_output", features)
    recording.keep("audio", "attention_mask", mask)
    form: Form = recording.forms["audio"]["attention_mask"]
    rows = recording.forms["audio"]["pooler_output"].value(recording.fields)
    assert torch.equal(rows[form.value(recording.fields)], features[mask])
