"""The families that coverage is measured on."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from argosy.errors import ExportError

from .journal import Results

#: Kinds in the order of the report.
KINDS = ("causal LM", "encoder", "seq2seq", "vision", "audio", "multimodal")

DEFAULT_LIST = Path(__file__).with_name("families.csv")


@dataclass(frozen=True)
class Family:
    """One row of the list: what users call it, the ``model_type`` of its configuration, and its kind."""

    name: str
    model_type: str
    kind: str


def read_families(path: Path | None = None, only: str = "") -> list[Family]:
    """The families of a CSV file (``family,model_type,kind``; the last two may be left out); `only` names some of them."""
    path = path or DEFAULT_LIST
    if not path.exists():
        raise ExportError(f"{path} does not exist", code="not-found", hint="give a CSV file with a column 'family'")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or "family" not in rows[0]:
        raise ExportError(
            f"{path} has no column 'family'", code="invalid-input", hint="its first line is family,model_type,kind"
        )
    known = {family.name: family for family in read_families()} if path != DEFAULT_LIST else {}
    families = []
    for row in rows:
        name = row["family"]
        listed = known.get(name, Family(name, name, "other"))
        families.append(Family(name, row.get("model_type") or listed.model_type, row.get("kind") or listed.kind))
    if only:
        wanted = [name.strip() for name in only.split(",") if name.strip()]
        by_name = {family.name: family for family in families}
        if unknown := [name for name in wanted if name not in by_name]:
            raise ExportError(f"{', '.join(unknown)} not in {path.name}", code="not-found", hint="check the names")
        families = [by_name[name] for name in wanted]
    return families


def of_results(families: Iterable[Family], results: Results) -> list[Family]:
    """Those that there is a result of, in the order of `families`, then those that it lacks."""
    by_name = {family.name: family for family in families}
    measured = dict.fromkeys(key[0] for key in results)
    names = [*(name for name in by_name if name in measured), *(name for name in measured if name not in by_name)]
    return [by_name.get(name, Family(name, name, "other")) for name in names]


def first_of_kinds(families: list[Family], count: int) -> list[Family]:
    """`count` of them, the first ones of each kind (lists begin with the popular ones), as many as is its share."""
    found: list[Family] = []
    for kind in dict.fromkeys(family.kind for family in families):
        same = [family for family in families if family.kind == kind]
        found += same[: -(-len(same) * count // len(families))]
    return found
