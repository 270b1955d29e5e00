"""`argosy.export`: the command-line program from Python."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import ExportError

logger = logging.getLogger(__name__)

_CHECKED_AND_WRONG = 3

#: Tensors or arrays by the names of forward's parameters, or a file of them.
SampleInputs = Mapping[str, Any] | str | os.PathLike[str]


def export(
    model: str | os.PathLike[str],
    format: str,
    output: str | os.PathLike[str],
    *,
    progress: Callable[[dict[str, Any]], None] | None = None,
    inputs: SampleInputs | Sequence[SampleInputs] | None = None,
    **options: Any,
) -> Path:
    """Exports a model, as ``argosy export FORMAT --model MODEL OUTPUT`` does, and returns where to.

    `model` is a folder or ``ORG/NAME``; for a model in memory see `argosy.DynamoExporter`. `options` are the command's flags:
    ``argosy.export("org/name", "pt2", "out.pt2", revision="v1", check="off", trust_remote_code=True)``. True stands for a
    flag alone; None and False leave it out. `progress` gets the program's progress objects, as ``--progress json`` prints
    them. `inputs` are sample inputs of the model's ``forward``, for what nobody can guess: tensors or arrays by name, or a
    ``.safetensors`` or ``.npz`` file; several of other sizes in a list, and these sizes vary. What fails is an `ExportError`; an export that was checked and is wrong has the code ``"wrong-results"``.
    """
    if not isinstance(model, (str, os.PathLike)):
        raise ExportError(
            f"the model is a {type(model).__name__}",
            code="invalid-input",
            hint="give a folder or ORG/NAME; models in memory are for argosy.DynamoExporter",
        )
    command = [str(find_program()), "export", format, "--model", os.fspath(model), "--output", os.fspath(output)]
    command += [*_flags(options), "--progress", "off" if progress is None else "json"]
    with tempfile.TemporaryDirectory(prefix="argosy-inputs-") as folder:
        command += [f"--inputs={os.fspath(file)}" for file in _input_files(inputs, Path(folder))]
        _run(command, progress)
    return Path(output)


def _input_files(
    inputs: SampleInputs | Sequence[SampleInputs] | None, folder: Path
) -> Iterator[str | os.PathLike[str]]:
    if inputs is None:
        return
    sets = [inputs] if isinstance(inputs, (str, os.PathLike, Mapping)) else inputs
    for number, each in enumerate(sets):
        if isinstance(each, (str, os.PathLike)):
            yield each
            continue
        if not isinstance(each, Mapping):
            raise ExportError(f"inputs are a {type(each).__name__}", code="invalid-input",
                              hint="give tensors by name, or a file of them")  # fmt: skip
        import torch
        from safetensors.torch import save_file

        tensors = {name: torch.as_tensor(value).contiguous().clone() for name, value in each.items()}
        save_file(tensors, folder / f"{number}.safetensors")
        yield folder / f"{number}.safetensors"


def _run(command: list[str], progress: Callable[[dict[str, Any]], None] | None) -> None:
    # The package that this is part of is the one to make captures with.
    environment = {"ARGOSY_PYTHON": sys.executable, **os.environ}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
    ) as process:
        said = []
        try:
            for line in process.stdout or ():
                values = _progress_of(line)
                if values is None:
                    said.append(line)
                    logger.info("%s", line.rstrip("\n"))
                elif progress is not None:
                    progress(values)
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise _error_of("".join(said), process.returncode)


def find_program() -> Path:
    """The program: what ARGOSY_BIN names, else the one that was installed with this Python, else the one on PATH."""
    named = os.environ.get("ARGOSY_BIN")
    folders = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    candidates = [Path(named)] if named else [folder / "argosy" for folder in folders]
    found = next((path for path in candidates if os.access(path, os.X_OK)), None)
    if found is None and not named and (on_path := shutil.which("argosy")):
        found = Path(on_path)
    if found is None:
        raise ExportError(
            f"there is no program {named or 'argosy'}",
            code="not-found",
            hint="pip install . installs it with the package; ARGOSY_BIN names another",
        )
    return found


def _flags(options: dict[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            yield flag
        elif value is not None and value is not False:
            yield f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}"


def _progress_of(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        values = json.loads(line)
    except ValueError:
        return None
    return values if isinstance(values, dict) else None


def _error_of(said: str, exit_code: int) -> ExportError:
    """What the program printed as an exception: ``error[code]: message``, lines of context, a hint."""
    found = re.search(r"^error\[([\w-]+)\]: (.*?)(?=^error\[|\Z)", said, re.MULTILINE | re.DOTALL)
    if found is None:
        lines = said.strip().splitlines()
        if exit_code == _CHECKED_AND_WRONG:
            message, code = "the export was compared with the model and differs", "wrong-results"
        else:
            message, code = (lines[0] if lines else f"argosy ended with {exit_code}"), "invalid-input"
        return ExportError(message, code=code, details=said.strip() or message)
    code, text = found.groups()

    def line(start: str) -> str | None:
        match = re.search(rf"^  {start}(.*)$", text, re.MULTILINE)
        return match and match.group(1)

    message = re.split(r"^  (?:in |from |hint: )", text, maxsplit=1, flags=re.MULTILINE)[0].strip()
    return ExportError(
        message,
        code="wrong-results" if exit_code == _CHECKED_AND_WRONG else code,
        node=line("in node "),
        location=line("from "),
        hint=line("hint: ") or "",
        details=found.group(0),
    )
