"""Plays runs of decoders in exports that are made for a runner: a .pte that keeps its cache, and a bundle for ONNX Runtime GenAI.

Both know single texts without padding; logits are those of the last token of each call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .calls import Run
from .play import Played, allowed_by_rounding, difference


class OutOfRange(LookupError):
    """A text that is longer than the export says it takes."""


class StatefulProgram:
    """A program of ``--task text-generation``: one method, whose cache lasts from call to call and from text to text."""

    def __init__(self, folder: Path) -> None:
        from argosy.check.executorch_worker import open_method, open_program

        program = open_program(folder / "model.pte")
        self._forward = open_method(program, "forward")
        self._longest = int(open_method(program, "get_max_context_len")([])[0])
        self._position = 0

    def start(self, count: int) -> None:
        self._position = 0

    def feed(self, ids: Any) -> Any:
        """Logits of the last token."""
        import torch

        end = self._position + ids.shape[1]
        if end > self._longest:
            raise OutOfRange(f"its longest text has {self._longest} tokens")
        logits = self._forward([ids, torch.arange(self._position, end)])[0]
        self._position = end
        return logits.reshape(-1, logits.shape[-1])[-1]


class GenaiBundle:
    """A bundle of ``--for genai``, in its engine."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime_genai

        self._engine = onnxruntime_genai
        self._model = onnxruntime_genai.Model(str(folder))
        config = json.loads((folder / "genai_config.json").read_text(encoding="utf-8"))
        self._longest = int(config["model"]["context_length"])
        self._generator: Any = None
        self._count = 0

    def start(self, count: int) -> None:
        parameters = self._engine.GeneratorParams(self._model)
        parameters.set_search_options(do_sample=False, num_beams=1, repetition_penalty=1.0, batch_size=1, max_length=min(count, self._longest))
        self._generator = self._engine.Generator(self._model, parameters)
        self._count = 0

    def feed(self, ids: Any) -> Any:
        import torch

        self._count += ids.shape[1]
        if self._count > self._longest:
            raise OutOfRange(f"its longest text has {self._longest} tokens")
        self._generator.append_tokens(ids.numpy().astype("int32"))
        logits = torch.from_numpy(self._generator.get_logits().copy())
        return logits.reshape(-1, logits.shape[-1])[-1]


#: By extra export: its arguments after ``argosy export`` and what opens it.
EXTRAS = {
    "text-generation": (("executorch", "--task", "text-generation"), StatefulProgram),
    "genai": (("onnx", "--for", "genai"), GenaiBundle),
}


def play_texts(opened: Any, runs: list[Run], tolerance: float) -> list[Played]:
    """Runs of one text, one after the other in one engine: what it keeps of the last text must not show."""
    played = []
    for run in runs:
        if run.name == "padded batch":
            continue
        if run.reason:
            played.append(Played(run.name, "skipped", note=run.reason))
            continue
        try:
            allowed = max(tolerance, allowed_by_rounding(run))
            played.append(_play_tokens(opened, run, allowed) if run.tokens is not None else _play_feeds(opened, run, allowed))
        except OutOfRange as error:
            played.append(Played(run.name, "refused", note=f"range: {error}"))
        except Exception as error:  # noqa: BLE001 - what engines raise
            played.append(Played(run.name, "refused", note=f"engine: {' '.join(str(error).split())[:200]}"))
    return played


def _play_feeds(opened: Any, run: Run, tolerance: float) -> Played:
    opened.start(sum(feed.inputs["input_ids"].shape[1] for feed in run.feeds) + 1)
    worst, where = 0.0, ""
    for number, feed in enumerate(run.feeds):
        try:
            logits = opened.feed(feed.inputs["input_ids"])
        except OutOfRange as error:
            if worst > tolerance:
                break
            return Played(run.name, "refused", worst, f"range: {error} (call {number + 1})")
        apart = difference(feed.expected["logits"][0, -1], logits)
        if apart > worst:
            worst, where = apart, f"call {number + 1}"
    return Played(run.name, "right" if worst <= tolerance else "wrong", worst, where if worst > tolerance else "")


def _play_tokens(opened: Any, run: Run, tolerance: float) -> Played:
    import torch

    assert run.tokens is not None
    new = run.feeds[0].inputs["input_ids"]
    opened.start(new.shape[1] + len(run.tokens))
    for number, expected in enumerate(run.tokens):
        token = int(opened.feed(new).argmax())
        if token != expected:
            margin = run.margins[number]
            note = f"token {number + 1} of {len(run.tokens)} differs, its two best logits are {margin:.1e} apart"
            return Played(run.name, "right" if margin <= 2 * tolerance else "wrong", margin, note)
        new = torch.tensor([[token]])
    return Played(run.name, "right")
