#!/usr/bin/env python3
"""Writes a checkpoint of many shards whose tensors are holes: it has the headers, names and sizes of a large model and
takes a few MB of disk. For measuring how fast a checkpoint opens.

    tools/make_sparse_checkpoint.py FOLDER [--shards 160] [--tensors 90000] [--gigabytes 200]
"""

import argparse
import json
import pathlib
import struct

# Names and shapes as in a mixture of experts; repeated with growing layer numbers until there are enough.
EXPERT = [("w1", 0), ("w2", 1), ("w3", 0)]
LAYER = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate",
         "input_layernorm", "post_attention_layernorm"]


def tensor_names(count):
    """Yields `count` names."""
    layer = 0
    while True:
        for name in LAYER:
            yield f"model.layers.{layer}.{name}.weight"
        for expert in range(256):
            for name, _ in EXPERT:
                yield f"model.layers.{layer}.mlp.experts.{expert}.{name}.weight"
        layer += 1


def write_shard(path, names, rows):
    """One file of bf16 tensors [rows, 1024]; the bytes after the header are a hole."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name in names:
        size = rows * 1024 * 2
        header[name] = {"dtype": "BF16", "shape": [rows, 1024], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return end


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--shards", type=int, default=160)
    parser.add_argument("--tensors", type=int, default=90_000)
    parser.add_argument("--gigabytes", type=float, default=200)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = max(1, round(options.gigabytes * 1e9 / options.tensors / 2048))
    generator = tensor_names(options.tensors)
    weight_map, total = {}, 0
    for shard in range(options.shards):
        count = options.tensors * (shard + 1) // options.shards - options.tensors * shard // options.shards
        names = sorted(next(generator) for _ in range(count))
        file = f"model-{shard + 1:05}-of-{options.shards:05}.safetensors"
        total += write_shard(options.folder / file, names, rows)
        weight_map.update((name, file) for name in names)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    (options.folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    print(f"{options.tensors} tensors, {total / 1e9:.1f} GB in {options.shards} shards: {options.folder}")


if __name__ == "__main__":
    main()
