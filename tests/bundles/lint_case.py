"""What a case of lint is."""

from __future__ import annotations

import dataclasses

from lint_changes import Change


@dataclasses.dataclass(frozen=True)
class Case:
    """`spoil` gets the folder of a `bundle` of lint_bundles. Lint must report `rule` with `message` in it, and `also`."""

    rule: str
    bundle: str
    message: str
    spoil: Change
    issue: str = ""  # the public one whose defect this is
    also: tuple[str, ...] = ()
    engine: str = ""  # "": the bundle's
    name: str = ""


GENAI, JS, OPTIMUM = "genai", "transformersjs", "optimum"
GRAPH, CONFIG = "genai_config.json", "config.json"
