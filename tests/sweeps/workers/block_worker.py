"""Runs the Python blocks of one document, one after the other: a JSON object a line in, one out. Started by the sweep "blocks".

What a block exports is run beside the model, and what its comments say of results has to be so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import json
import linecache
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "ops"))
from core import find_core  # noqa: E402

find_core()

import torch  # noqa: E402
import transformers  # noqa: E402

import argosy.exporters.configs  # noqa: E402
from argosy.capture.swap import replaced  # noqa: E402

#: Where names are looked for that a document uses and imports nowhere.
_PACKAGES = ("argosy", "argosy.exporters", "transformers", "typing")


def generate_text(prompt: str, model: Any, tokenizer: Any) -> str:
    inputs = tokenizer(prompt, return_tensors="pt")
    return tokenizer.decode(model.generate(**inputs, max_new_tokens=10, do_sample=False)[0])


def load_dataset(*names: str, split: str = "") -> list[dict[str, Any]]:
    """Three short sounds, in place of a data set of speech."""
    times = [torch.arange(16_000 + 4_000 * i) / 16_000 for i in range(3)]
    return [{"audio": {"array": (0.1 * torch.sin(600 * (i + 1) * time)).numpy(), "sampling_rate": 16_000}} for i, time in enumerate(times)]


#: Names that no document defines, made from those that are there.
GIVEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "generate_text": lambda names: generate_text,
    "load_dataset": lambda names: load_dataset,
    "kwargs": lambda names: names["observer"].infer_arguments(),
    "dynamic_shapes": lambda names: names["observer"].infer_dynamic_shapes(set_batch_dimension_for=True),
    "filename_encoder": lambda names: "encoder.onnx",
    "filename_decoder": lambda names: "decoder.onnx",
}


def public(name: str) -> tuple[Any, str]:
    """What packages call so, and which; ``(None, "")`` where none does."""
    for package in _PACKAGES:
        module = importlib.import_module(package)
        if hasattr(module, name):
            return getattr(module, name), package
    try:
        return importlib.import_module(name), name
    except ImportError:
        return None, ""


def resolve(name: str, names: dict[str, Any]) -> str:
    """Puts a name that nothing defines into ``names``; how it came there."""
    if name in GIVEN:
        names[name] = GIVEN[name](names)
        return f"{name} is made up: no block defines it"
    value, package = public(name)
    if not package:
        raise NameError(f"nothing defines {name}")
    names[name] = value
    return f"{name} is imported from {package}"


def check_comments(code: str, names: dict[str, Any]) -> list[str]:
    """What is otherwise than comments like ``# components = {"image_encoder": ExportedProgram, …}`` say of the name before them."""
    wrong, last = [], ""
    for line in code.splitlines():
        if found := re.match(r"(\w+)(?:: .+)? = ", line):
            last = found[1]
        elif found := re.match(r"# (?:(\w+) = )?(\{.*\})", line):
            value = names[found[1] or last]
            for key, kind in re.findall(r'"(\w+)": (\w*)', found[2]):
                if key not in value:
                    wrong.append(f"{found[1] or last} has no {key}")
                elif kind and type(value[key]).__name__ != kind:
                    wrong.append(f"{key} is a {type(value[key]).__name__}, not a {kind}")
    return wrong


def check_rows(bound: list[str], names: dict[str, Any]) -> list[str]:
    """Calls that a comparison of recorded calls found to differ."""
    tables = [names[name] for name in bound if isinstance(names.get(name), list)]
    rows = [row for table in tables for row in table if isinstance(row, dict) and "ok" in row and "abs" in row]
    return [f"call {row.get('call', '')} differs by {row['abs']}: {row.get('error') or ''}" for row in rows if not row["ok"]]


def checking_exports() -> None:
    """Every export of an exporter is compared with the model."""
    original = argosy.exporters.configs.ExportConfigMixin.accept.__func__

    def accept(cls: type, config: Any) -> Any:
        accepted = original(cls, config)
        return dataclasses.replace(accepted, check=True) if hasattr(accepted, "check") else accepted

    argosy.exporters.configs.ExportConfigMixin.accept = classmethod(accept)


def processors_without_torchvision(notes: list[str]) -> None:
    """Without torchvision transformers has no processor for videos, which some classes insist on; the rest needs Pillow alone."""
    original = transformers.AutoProcessor.from_pretrained

    def from_pretrained(name: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(name, *args, **kwargs)
        except ImportError:
            from examples import load_processor

            notes.append("the processor is put together without torchvision")
            with replaced(transformers.AutoProcessor, "from_pretrained", original):
                return load_processor()

    transformers.AutoProcessor.from_pretrained = from_pretrained


class Page:
    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}
        #: what each name was when it was first defined
        self.first: dict[str, Any] = {}

    def run(self, request: dict[str, Any]) -> tuple[list[str], list[str]]:
        """What was put in place of what is missing, and what is wrong with the results."""
        code, changes = request["code"], []
        names = {"__name__": "__main__"} if request["alone"] else self.names
        # A block that lacks imports alone is a program of its own, whatever a block before has made of such a name.
        is_program = all(name not in GIVEN and public(name)[1] for name in request["missing"])
        for name in request["missing"]:
            if name not in names or is_program:
                known = request["alone"] and name in self.first
                if known:
                    names[name] = self.first[name]
                changes.append(f"{name} is that of the first block that defines it" if known else resolve(name, names))
        # Tracebacks show lines of the block; torch's exporter looks at the source of what it traces.
        linecache.cache[request["name"]] = (len(code), None, code.splitlines(keepends=True), request["name"])
        for name in request["bound"]:
            names.pop(name, None)  # what a block before made of it is not what this one would
        try:
            exec(compile(code, request["name"], "exec"), names)  # noqa: S102 - whoever starts this chose the document
        except BaseException:
            for name in request["bound"]:
                names.pop(name, None)
            raise
        for name in request["bound"]:
            self.first.setdefault(name, names.get(name))
        return changes, check_comments(code, names) + check_rows(request["bound"], names)


def main() -> None:
    answers, page = sys.stdout, Page()
    notes: list[str] = []
    checking_exports()
    processors_without_torchvision(notes)
    torch.manual_seed(0)
    for line in sys.stdin:
        changes: list[str] = []
        failure = ""
        notes.clear()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                changes, wrong = page.run(json.loads(line))
            failure = "; ".join(wrong)
        except BaseException as error:  # noqa: BLE001 - also what a block may call sys.exit with
            print(traceback.format_exc(), file=sys.stderr, flush=True)
            failure = f"{type(error).__name__}: {error}"
        answers.write(json.dumps({"failure": failure, "changes": [*changes, *dict.fromkeys(notes)]}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
