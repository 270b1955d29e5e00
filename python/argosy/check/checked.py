"""What a check found, for programs and for people."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from .rows import Row

#: What rows of each origin are, in plain words; in the order in which a summary names them.
_WORDS = {
    "edge": "component calls at edge shapes",
    "forward": "observed calls of forward",
    "generate": "observed calls of generate",
    "prompt": "calls as runners make them (prompts whole, in pieces and token by token)",
    "logits": "prompts whole and in pieces in the engine, by their logits",
    "text": "calls with a text",
    "greedy": "runs of greedy tokens",
    "tokens": "runs of greedy tokens in the engine",
    "adapter": "such runs with adapters switched on and off",
}
_SUBJECTS = {
    "twin": "a small model of this kind, exported with the same options, agrees with PyTorch",
    "full": "this model with its own weights agrees with PyTorch",
    "tokens": "this model with its own weights agrees with PyTorch",
}


def _singular(words: str) -> str:
    return re.sub(r"\b(call|run|prompt)s\b", r"\1", words, count=1)


@dataclass
class Checked:
    """What a check found."""

    kind: str
    engine: str
    model_class: str
    task: str
    tolerance: float
    rows: list[Row] = field(default_factory=list)
    cpu_seconds: float = 0.0
    #: why nothing was run, which is no fault of the export; empty: something was
    unchecked: str = ""

    @property
    def ok(self) -> bool:
        """At least one call was made, and none was wrong. Figures are no calls."""
        return any(row.ok and not row.measures for row in self.rows) and not any(row.ok is False for row in self.rows)

    def summary(self) -> str:
        """What was compared and what came of it; nothing more is claimed."""
        if self.unchecked:
            return f"unchecked: {self.unchecked}"
        made = [row for row in self.rows if row.ok is not None and not row.measures]
        wrong = sum(row.ok is False for row in made)
        if not made:
            return "no call could be made"
        if wrong:
            return f"{wrong} of {len(made)} calls are wrong"
        counts = {words: sum(row.origin.split()[0].rstrip(",") == origin for row in made) for origin, words in _WORDS.items()}
        parts = [f"{count} {words if count > 1 else _singular(words)}" for words, count in counts.items() if count]
        text = f"{_SUBJECTS[self.kind]}: {', '.join(parts)}"
        differences = [row.difference.abs for row in made if row.difference is not None and not row.difference.error]
        if differences:
            text += f"; largest difference {max(differences):.1e}"
        measured = [row.note for row in self.rows if row.measures and row.note]
        skipped = list(dict.fromkeys(row.note for row in self.rows if row.ok is None and row.note))
        if measured:
            text += f"; {'; '.join(measured)}"
        if skipped:
            text += f"; not compared: {'; '.join(skipped)}"
        return text

    def document(self) -> dict[str, Any]:
        from ..capture.session import versions

        return {
            "format": "argosy-check",
            "version": 1,
            "kind": self.kind,
            "engine": self.engine,
            "versions": versions(),
            "model_class": self.model_class,
            "task": self.task,
            "ok": self.ok,
            "unchecked": self.unchecked or None,
            "summary": self.summary(),
            "tolerance": self.tolerance,
            "quality": next((row.figures for row in self.rows if row.figures), None),
            "cpu_seconds": round(self.cpu_seconds, 2),
            "rows": [{name: _strict(value) for name, value in row.columns().items()} for row in self.rows],
        }


def _strict(value: Any) -> Any:
    """JSON has no infinity."""
    return "Infinity" if isinstance(value, float) and not math.isfinite(value) else value
