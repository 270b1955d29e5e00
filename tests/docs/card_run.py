"""Runs the code of a bundle's model card, as it stands there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from blocks import Block, find_blocks


def card_blocks(bundle: Path) -> list[Block]:
    return find_blocks(bundle / "README.md", (bundle / "README.md").read_text())


def run_card(bundle: Path, folder: Path, node: str | None = None, node_modules: Path | None = None) -> str:
    """What the card's code prints. `folder` has the files that a card speaks of (a picture, a sound), and is written to."""
    (block,) = card_blocks(bundle)
    # Nothing of this project is needed to run a bundle.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["OMP_NUM_THREADS"] = "1"
    if block.language == "js":
        assert "`models/NAME`" in (bundle / "README.md").read_text()
        (folder / "models").mkdir()
        (folder / "models/NAME").symlink_to(bundle)
        (folder / "node_modules").symlink_to(node_modules)
        (folder / "card.mjs").write_text(block.text)
        command, place = [node, folder / "card.mjs"], folder
    else:
        assert block.language == "python" and "In this folder" in (bundle / "README.md").read_text()
        for file in ("picture.png", "speech.wav"):
            if (folder / file).exists():
                (bundle / file).symlink_to(folder / file)
        (folder / "card.py").write_text(block.text)
        command, place = [sys.executable, folder / "card.py"], bundle
    done = subprocess.run([str(part) for part in command], cwd=place, env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, f"{block}\n{block.text}\n{done.stdout}\n{done.stderr}"
    return done.stdout
