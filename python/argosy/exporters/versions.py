"""Versions that were tested, and one warning about others."""

from __future__ import annotations

import importlib.metadata
import warnings

#: Release series (major.minor) with which the tests pass.
TESTED_VERSIONS: dict[str, tuple[str, ...]] = {"torch": ("2.13",), "transformers": ("5.22",)}


class VersionDriftWarning(UserWarning):
    """The installed torch or transformers is not one that was tested.

    Silence it with ``warnings.simplefilter("ignore", argosy.VersionDriftWarning)``.
    """


_warned: set[str] = set()


def version_drift() -> list[str]:
    """For each package whose series was not tested, a phrase that says so."""
    drift = []
    for package, tested in TESTED_VERSIONS.items():
        try:
            installed = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        if ".".join(installed.split("+")[0].split(".")[:2]) not in tested:
            drift.append(f"{package} {installed} (tested: {', '.join(f'{series}.*' for series in tested)})")
    return drift


def warn_on_drift() -> None:
    """Warns about untested versions, once per process."""
    text = "; ".join(version_drift())
    if not text or text in _warned:
        return
    _warned.add(text)
    warnings.warn(
        f"argosy was not tested with {text}. Most models will export; if one fails, try a tested version first.",
        VersionDriftWarning,
        stacklevel=3,
    )
