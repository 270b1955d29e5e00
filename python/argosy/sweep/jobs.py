"""Jobs of a sweep, as lines of JSON say them."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import ExportError

BACKENDS = ("onnx", "executorch", "pt2")
CHECKS = ("twin", "full", "off")
#: Fields of a configuration that leave a capture alone, as ``argosy.capture.configuration`` has them.
IGNORED_FIELDS = ("_name_or_path", "_commit_hash", "transformers_version", "quantization_config", "compression_config")
#: Options of an export that its capture depends on, too.
_OF_CAPTURES = ("revision", "shape", "prefill", "offline", "trust-remote-code", "dtype", "inputs", "trace")
_FIELDS = {"name", "model", "configuration", "task", "backend", "options", "check", "family", "seconds", "memory", "disk", "cpus"}
#: What the sweep itself decides.
_OWN_OPTIONS = ("model", "task", "check", "output", "output-dir", "json", "progress", "dry-run", "capture", "help")
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
          "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What one job may take; 0: as much as it wants."""

    seconds: float = 0.0
    memory: int = 0
    disk: int = 0


@dataclass(frozen=True)
class Job:
    name: str
    #: a folder or ORG/NAME; empty if a configuration is exported
    model: str = ""
    #: a folder with config.json, or a model type
    configuration: str = ""
    backend: str = "onnx"
    task: str = ""
    #: of the export, by the names of flags without dashes
    options: Mapping[str, Any] = field(default_factory=dict)
    check: str = "twin"
    family: str = ""
    limits: Limits = Limits()
    #: cores that a cluster reserves
    cpus: float = 1.0
    #: a hash of what is exported and how; neither names nor limits are in it
    id: str = ""

    @property
    def target(self) -> str:
        """What it is exported to, in a word or two."""
        quantized = self.options.get("quantize") or self.options.get("qlinear")
        parts = [self.backend, self.options.get("for") or self.options.get("engine"), quantized]
        return " ".join(str(part) for part in parts if part)

    @property
    def source(self) -> str:
        return self.model or self.configuration


def read_jobs(path: Path) -> list[Job]:
    """The jobs of a file, in its order, each once. `ExportError` names the first line that is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ExportError(f"{path} cannot be read: {error.strerror}", code="not-found",
                          hint="give a file with one JSON object a line, each a job") from error  # fmt: skip
    except UnicodeDecodeError as error:
        raise ExportError(f"{path} is not UTF-8", code="invalid-input", hint="write one JSON object a line") from error
    jobs: dict[str, Job] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            job = parse_job(line, f"{path}:{number}")
            jobs.setdefault(job.id, job)
    if not jobs:
        raise ExportError(f"{path} has no jobs", code="invalid-input", hint='write lines such as {"model": "model/"}')
    return list(jobs.values())


def parse_job(line: str, place: str) -> Job:
    def wrong(what: str, hint: str) -> ExportError:
        return ExportError(f"{place}: {what}", code="invalid-input", hint=hint)

    try:
        values = json.loads(line)
    except ValueError as error:
        raise wrong(f"this is no JSON: {error}", "write one JSON object a line") from error
    if not _is_text(json.dumps(values, ensure_ascii=False)):
        raise wrong("this has text that is none, such as \\u0000", "leave out such characters")
    if not isinstance(values, dict):
        raise wrong("this is no JSON object", 'write lines such as {"model": "model/"}')
    if unknown := sorted(set(values) - _FIELDS):
        raise wrong(f"a job has no {unknown[0]!r}", f"it has {', '.join(sorted(_FIELDS))}")
    for name in ("name", "model", "configuration", "task", "backend", "check", "family"):
        if not isinstance(values.get(name, ""), str) or not values.get(name, "x"):
            raise wrong(f"{name!r} is no text, or empty", "correct it or leave it out")
    if ("model" in values) == ("configuration" in values):
        raise wrong("a job names a model or a configuration, one of them", 'write {"model": …} or {"configuration": …}')
    for name, known in (("backend", BACKENDS), ("check", CHECKS)):
        if values.get(name, known[0]) not in known:
            raise wrong(f"{values[name]!r} is no {name}", f"use one of {', '.join(known)}")
    options = values.get("options", {})
    if not isinstance(options, dict) or not all(_is_option(*item) for item in options.items()):
        raise wrong("the options are no object of flags", 'write {"for": "genai", "prefill": true}; a list repeats a flag')
    options = {name.replace("_", "-"): value for name, value in options.items()}
    if own := sorted(set(options) & set(_OWN_OPTIONS)):
        raise wrong(f"the option {own[0]!r} is the sweep's", "a job has fields for model, task and check")
    try:
        limits = Limits(_positive(values, "seconds"), parse_size(values.get("memory", 0)), parse_size(values.get("disk", 0)))
        cpus = _positive(values, "cpus") or 1.0
    except ValueError as error:
        raise wrong(str(error), 'write "seconds": 600, "memory": "8GB", "disk": "20GB"') from error
    job = Job(
        name=values.get("name") or Path(values.get("model") or values["configuration"]).name,
        model=values.get("model", ""),
        configuration=values.get("configuration", ""),
        backend=values.get("backend", "onnx"),
        task=values.get("task", ""),
        options=options,
        check=values.get("check", "twin"),
        family=values.get("family", ""),
        limits=limits,
        cpus=cpus,
    )
    return replace(job, id=digest([job.model, job.configuration, job.backend, job.task, job.options, job.check]))


def _is_text(document: str) -> bool:
    """Whether files and processes can be called as it says."""
    try:
        document.encode()
    except UnicodeEncodeError:
        return False
    return re.search(r"(?<!\\)\\u0000", document) is None


def _is_option(name: str, value: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    return bool(re.fullmatch(r"[a-z][a-z0-9_-]*", name)) and all(isinstance(each, (str, int, float, bool)) for each in values)


def _positive(values: Mapping[str, Any], name: str) -> float:
    value = values.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name!r} is no number of at least 0")
    return float(value)


def parse_size(value: Any) -> int:
    """Bytes: a number, or as in 512MB and 8GiB."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([a-zA-Z]*)", value) if isinstance(value, str) else None
    if not found or found[2].lower() not in _UNITS:
        raise ValueError(f"{value!r} is not a size")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def digest(value: Any) -> str:
    """Of a value as canonical JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def job_key(job: Job, sources: str) -> str:
    """What a result is kept under: it counts for this job, this state of its folder and these sources of the program."""
    return digest([job.id, sources, _stamp(Path(job.source))])


def _stamp(folder: Path) -> list[Any]:
    """What tells whether a folder was changed; empty for what is none."""
    try:
        files = [(path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
    except (OSError, ValueError):
        return []
    return [[name, status.st_size, status.st_mtime_ns] for name, status in files]


def shard(jobs: list[Job], index: int, count: int) -> list[Job]:
    """The jobs of part `index` of `count`, from 1. Parts differ by at most one job in size, and do not depend on the order of the
    file. They begin at different places, so that those that share a cache do not all wait for the same capture."""
    ordered = sorted(jobs, key=lambda job: job.id)
    mine = {job.id for job in ordered[index - 1 :: count]}
    found = [job for job in jobs if job.id in mine]
    start = len(found) * (index - 1) // count
    return found[start:] + found[:start]


def read_configuration(job: Job) -> dict[str, Any] | None:
    """config.json of a folder; None for a model of the Hub, or if it cannot be read."""
    try:
        values = json.loads((Path(job.source) / "config.json").read_bytes())
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) else None


@dataclass(frozen=True)
class Needs:
    """What jobs share, by hashes: of two jobs with an equal one the second waits until the first has made it."""

    #: captures of all backends, most of which are one
    configuration: str
    #: the capture for its backend
    capture: str
    #: the check on a twin
    check: str


def needs_of(job: Job) -> Needs:
    document = read_configuration(job)
    what: Any = job.source if document is None else _canonical(document)
    # What an ExecuTorch program is for does not change which class is captured.
    task = "" if job.backend == "executorch" else job.task
    configuration = digest([what, task, {name: job.options.get(name) for name in _OF_CAPTURES}])
    return Needs(
        configuration, digest([configuration, job.backend]), digest([configuration, job.backend, job.task, job.options, job.check])
    )


def family_of(job: Job) -> str:
    """The model type, where it can be told; else the organisation that has the model."""
    if job.family:
        return job.family
    document = read_configuration(job)
    if document is not None and isinstance(document.get("model_type"), str):
        return str(document["model_type"])
    return job.configuration or job.model.partition("/")[0]


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _canonical(each) for name, each in value.items() if name not in IGNORED_FIELDS}
    return [_canonical(each) for each in value] if isinstance(value, list) else value


def flags(options: Mapping[str, Any]) -> Iterable[str]:
    for name, value in options.items():
        for each in value if isinstance(value, list) else [value]:
            if each is True:
                yield f"--{name}"
            elif each is not None and each is not False:
                yield f"--{name}={each}"
