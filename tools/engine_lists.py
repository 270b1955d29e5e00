"""What engines know by name, read from their installed packages. Prints JSON.

    python tools/engine_lists.py [transformersjs|genai]

Argosy's own tables (src/engines) have the same names: bundles that name what an engine does not know would not load.
tests/bundles/test_engine_lists.py holds them against these lists, so that a new version of an engine is noticed."""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRANSFORMERSJS = ROOT / "tests" / "bundles" / "js" / "node_modules" / "@huggingface" / "transformers" / "src"

_CASE = re.compile(r"case '([^']+)':")
_LAYERS = re.compile(r"mapping\['(num_layers|num_decoder_layers)'\] = '([^']+)'")
_PART = re.compile(r"getNormalizedConfig\(config\.(\w+)\)")


def transformersjs_types(source: Path = TRANSFORMERSJS) -> dict[str, dict[str, str]]:
    """By model type: "part", the part of the configuration that describes its decoder; else what its layers are ("decoder" or
    "seq2seq") and the "key" that has their number."""
    text = (source / "configs.js").read_text(encoding="utf-8")
    switch = text[text.index("switch (config.model_type)") :]
    rows: dict[str, dict[str, str]] = {}
    names: list[str] = []
    row: dict[str, str] = {}
    for line in switch[: switch.index("const normalized_config")].splitlines():
        if case := _CASE.search(line):
            if row:
                names, row = [], {}
            names.append(case[1])
        elif layers := _LAYERS.search(line):
            row = {"kind": "decoder" if layers[1] == "num_layers" else "seq2seq", "key": layers[2]}
        elif part := _PART.search(line):
            row = {"part": part[1]}
        rows.update({name: row for name in names if row})
    return rows


def transformersjs_hybrids(source: Path = TRANSFORMERSJS) -> list[str]:
    """Types whose layers have states besides keys and values."""
    text = (source / "configs.js").read_text(encoding="utf-8")
    names = text[text.index("export function getCacheNames") :]
    names = names[: names.index("return getKeyValueNames")]
    listed = re.findall(r"if \(\[([^\]]+)\]\.includes\(config\.model_type\)\)", names)
    single = re.findall(r"else if \(config\.model_type === '([^']+)'\)", names)
    return sorted({*single, *(name for each in listed for name in re.findall(r"'([^']+)'", each))})


def transformersjs_suffixes(source: Path = TRANSFORMERSJS) -> dict[str, str]:
    """By dtype: how the names of its files end."""
    text = (source / "utils" / "dtypes.js").read_text(encoding="utf-8")
    constants = dict(re.findall(r"(\w+): '(\w+)'", text[text.index("DATA_TYPES") :]))
    mapping = text[text.index("SUFFIX_MAPPING") :]
    return {constants[name]: suffix for name, suffix in re.findall(r"\[DATA_TYPES\.(\w+)\]: '(\w*)'", mapping)}


def genai_names() -> set[str]:
    """Every plain text in the engine's library: what it knows by name is among them."""
    package = importlib.util.find_spec("onnxruntime_genai")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("tools/engine_lists.py: the Python package onnxruntime-genai is not installed")
    names: set[str] = set()
    for library in Path(package.submodule_search_locations[0]).glob("*.so*"):
        names.update(text.decode() for text in re.findall(rb"[a-z0-9_.\-]{2,60}", library.read_bytes()))
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", nargs="?", choices=["transformersjs", "genai"], default="transformersjs")
    if parser.parse_args().engine == "genai":
        print(json.dumps(sorted(genai_names()), indent=1))
    else:
        print(json.dumps({"types": transformersjs_types(), "hybrids": transformersjs_hybrids(), "suffixes": transformersjs_suffixes()}, indent=1))


if __name__ == "__main__":
    main()
