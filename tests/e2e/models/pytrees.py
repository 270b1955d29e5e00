"""Registration of the container classes that appear in the input and output specs of archives.

torch.export.load refuses an archive whose specs name a class that the process does not know as a pytree node. Output
classes of transformers register themselves when their module is imported; caches must be registered by hand.
"""

from __future__ import annotations

import importlib
import json
import re
import zipfile
from pathlib import Path

from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache, StaticCache
from transformers.exporters.exporter_dynamo import register_pytree_node


def register_caches() -> None:
    for cache in (DynamicCache, StaticCache, EncoderDecoderCache):
        register_pytree_node(cache)


def register_containers_of(archive: Path) -> None:
    """Makes every class named in the specs of `archive` known to torch.utils._pytree."""
    with zipfile.ZipFile(archive) as file:
        name = next(entry for entry in file.namelist() if entry.endswith("models/model.json"))
        program = json.loads(file.read(name))
    specs = json.dumps([call["signature"] for call in program["graph_module"]["module_call_graph"]])
    for module, separator, qualified in sorted(set(re.findall(r"(transformers(?:\.\w+)+)([.:])(\w+)", specs))):
        found = getattr(importlib.import_module(module), qualified)
        if separator == ":" and isinstance(found, type) and issubclass(found, Cache):
            register_pytree_node(found)
