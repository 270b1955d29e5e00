#!/usr/bin/env python3
"""Writes the op schemas of the installed torch; what `python -m argosy.schemas` does, without argosy being installed."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parent.parent / "python" / "argosy" / "schemas.py"), run_name="__main__")
