"""What of a folder is published, and whether it may be."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import ExportError
from ..run.bundles import read_json

MANIFEST = "bundle.json"
CARD = "README.md"
#: Of git and of huggingface_hub's downloads; never part of a bundle.
_NOT_CONTENT = (".git", ".cache", ".gitattributes")
_SHOWN = 5
_LARGEST_CARD = 16 << 20


@dataclass(frozen=True)
class File:
    name: str  # in the folder, with slashes
    path: Path
    size: int


@dataclass(frozen=True)
class Contents:
    folder: Path
    files: tuple[File, ...]  # by name
    manifest: dict[str, Any]  # empty: no export wrote this

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def title(self) -> str:
        """In a few words, for a commit."""
        source = self.manifest.get("source")
        name = source.get("name") if isinstance(source, dict) else None
        engine = self.manifest.get("engine")
        version = self.manifest.get("argosy")
        if not (isinstance(name, str) and isinstance(engine, str) and isinstance(version, str)):
            return "Upload by argosy"
        return printable(f"{name} for {engine}, exported by argosy {version}", 200)

    def card_head(self) -> list[str]:
        """The lines of the card that are metadata; empty if it has none."""
        file = next((file for file in self.files if file.name == CARD), None)
        if file is None or file.size > _LARGEST_CARD:
            return []
        lines = file.path.read_text(encoding="utf-8", errors="replace").splitlines()
        if not lines or lines[0].strip() != "---" or "---" not in lines[1:]:
            return []
        return lines[: lines.index("---", 1) + 1]


def read_contents(folder: Path, all_files: bool) -> Contents:
    """Files that an export wrote, by its manifest; with `all_files` whatever is there."""
    if not folder.is_dir():
        raise ExportError(f"{folder} is no folder", code="not-found", hint="give a folder that argosy export wrote")
    manifest = read_json(folder / MANIFEST)
    listed = manifest_files(manifest)
    if not listed:
        manifest = {}
    if not listed and not all_files:
        raise ExportError(
            f"no export wrote {folder}: it has no {MANIFEST} that lists files",
            code="invalid-input",
            hint="give a folder that argosy export onnx or executorch wrote; --all-files pushes any folder",
        )
    names = sorted(_names(folder))
    others = [name for name in names if name != MANIFEST and name not in listed]
    if others and not all_files:
        raise ExportError(
            f"{folder} has files that no export wrote: {_listed(others)}",
            code="invalid-input",
            hint="remove them, or push them too with --all-files",
        )
    if not names:
        raise ExportError(f"{folder} is empty", code="invalid-input", hint="give a folder that argosy export wrote")
    return Contents(folder, tuple(_file(folder, name) for name in names), manifest)


def manifest_files(manifest: dict[str, Any]) -> list[str]:
    """What a manifest of ours lists; empty if it is none."""
    files, kind = manifest.get("files"), manifest.get("format")
    if not isinstance(kind, str) or not kind.startswith("argosy-") or not isinstance(files, list):
        return []
    return [name for name in files if isinstance(name, str) and _is_plain(name)]


def lint(contents: Contents, program: Path) -> list[str]:
    """Warnings of ``argosy lint``, a line each. What it calls an error is one."""
    command = [str(program), "lint", "--json", "--", str(contents.folder.absolute())]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        report = json.loads(done.stdout)
        findings = [(each["severity"], each["rule"], _finding_text(each)) for each in report["findings"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExportError(
            f"{program} cannot lint {contents.folder}: {type(error).__name__}: {error}",
            code="invalid-input",
            hint="run argosy lint on it to see why; ARGOSY_BIN names another program",
        ) from error
    if not contents.manifest:
        # Folders of other formats are no bundles; that alone is no fault of theirs.
        findings = [finding for finding in findings if finding[1] != "graph-none"]
    errors = [text for severity, _, text in findings if severity == "error"]
    if errors:
        raise ExportError(
            f"argosy lint finds {len(errors)} error{'s' if len(errors) > 1 else ''} in {contents.folder}: "
            + "; ".join(errors[:_SHOWN])
            + (f" and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""),
            code="invalid-input",
            hint="export it again, or correct what argosy lint names",
        )
    return [text for _, _, text in findings]


def printable(text: str, longest: int = 400) -> str:
    """On one line, without what terminals obey."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text).strip()
    return shown if len(shown) <= longest else shown[:longest] + "…"


def size_text(size: int) -> str:
    value, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 999.5 or unit == "TB":
            break
        value /= 1000
    return f"{size} B" if unit == "B" else f"{value:.3g} {unit}"


def _names(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        inside = Path(place).relative_to(folder)
        if inside == Path():
            folders[:] = [name for name in folders if name not in _NOT_CONTENT]
            files = [name for name in files if name not in _NOT_CONTENT]
        # Links to folders are not entered; named as files, they are refused.
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        yield from ((inside / name).as_posix() for name in [*files, *links])


def _file(folder: Path, name: str) -> File:
    path = folder / name
    if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
        raise ExportError(
            f"{printable(str(path))} is no file of the folder: a link that leads out of it, or to nothing",
            code="invalid-input",
            hint="put the file itself there, or remove the link",
        )
    return File(name, path, path.stat().st_size)


def _is_plain(name: str) -> bool:
    """Whether a name stays inside its folder."""
    return bool(name) and not name.startswith("/") and ".." not in PurePosixPath(name).parts


def _finding_text(finding: dict[str, Any]) -> str:
    file = f"{finding['file']}: " if finding["file"] else ""
    return printable(f"[{finding['rule']}] {file}{finding['what']}")


def _listed(names: list[str]) -> str:
    shown = ", ".join(printable(name, 100) for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
