"""What a hostile file is: where it goes, how it is written, and how it must be refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Case:
    """`path` is what is given to the program, below the corpus folder: a file, or a folder of files.

    `write` gets that path, whose parent exists. The program must refuse it with the error `code` and a message that
    holds `message`; no two cases share a message.
    """

    path: str
    code: str
    message: str
    write: Callable[[Path], None]


def write_bytes(data: bytes) -> Callable[[Path], None]:
    """A file of these bytes."""

    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def write_folder(files: dict[str, bytes], links: dict[str, str] | None = None) -> Callable[[Path], None]:
    """A folder of these files and symbolic links (name: target)."""

    def write(path: Path) -> None:
        for name, data in files.items():
            file = path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        for name, target in (links or {}).items():
            link = path / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)

    return write
