"""Folders of shards whose index, links or contents lie."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

from case import Case, write_folder
from cases_safetensors import file, tensor

INDEX = "model.safetensors.index.json"


def shard(*names: str) -> bytes:
    return file({name: tensor(begin=4 * i, end=4 * i + 4) for i, name in enumerate(names)}, 4 * len(names))


def index(weight_map) -> bytes:
    return json.dumps({"metadata": {}, "weight_map": weight_map}).encode()


def torch_file(pickle: bytes) -> bytes:
    """What torch.save writes, with that pickle and no storages."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(zipfile.ZipInfo("pytorch_model/data.pkl"), pickle)
    return made.getvalue()


def shard_is_pipe(path: Path) -> None:
    write_folder({INDEX: index({"a": "pipe.safetensors"})})(path)
    os.mkfifo(path / "pipe.safetensors")


def cases() -> list[Case]:
    corrupt, invalid = "corrupt-file", "invalid-input"
    one, two = "one.safetensors", "two.safetensors"
    good = {one: shard("a"), two: shard("b")}
    rows = [
        # Paths that leave the folder.
        ("absolute_path", corrupt, 'it names the file "/etc/x.safetensors"', {INDEX: index({"a": "/etc/x.safetensors"})}),
        ("parent_path", corrupt, 'it names the file "../x.safetensors"', {INDEX: index({"a": "../x.safetensors"})}),
        ("hidden_parent_path", corrupt, 'it names the file "a/../../x.safetensors"',
         {INDEX: index({"a": "a/../../x.safetensors"})}),
        ("backslash_path", corrupt, 'it names the file "..\\\\x.safetensors"', {INDEX: index({"a": "..\\x.safetensors"})}),
        ("nul_in_path", corrupt, 'it names the file "x.safetensors\\x00.png"',
         {INDEX: index({"a": "x.safetensors\0.png"})}),
        ("empty_path", corrupt, 'it names the file ""', {INDEX: index({"a": ""})}),
        ("drive_path", corrupt, 'it names the file "C:x.safetensors"', {INDEX: index({"a": "C:x.safetensors"})}),
        ("other_kind_of_file", corrupt, 'it names the file "config.json"', {INDEX: index({"a": "config.json"})}),
        # Indices that are none.
        ("no_weight_map", corrupt, "it has no weight_map", {INDEX: b"{}"}),
        ("empty_weight_map", corrupt, "its weight_map is empty", {INDEX: index({})}),
        ("number_as_file", corrupt, 'the file of tensor "a" is not text', {INDEX: index({"a": 1})}),
        ("listed_twice", corrupt, 'it lists tensor "a" twice',
         {INDEX: b'{"weight_map":{"a":"one.safetensors","a":"two.safetensors"}}', **good}),
        ("deep_index", corrupt, "nested more than 1024 levels deep (at byte 1024)",
         {INDEX: b"[" * 100_000 + b"]" * 100_000}),
        ("cut_off_index", corrupt, "missing or misplaced (at byte 22)", {INDEX: b'{"weight_map":{"a":"b"'}),
        ("empty_index", corrupt, "it is empty", {INDEX: b""}),
        # Shards that are not as the index says.
        ("missing_shard", "not-found", "1 of 2 shards are missing", {INDEX: index({"a": one, "b": two}), one: shard("a")}),
        ("truncated_shard", corrupt, 'two.safetensors" is truncated', {INDEX: index({"a": one, "b": two}),
                                                                       one: shard("a"), two: shard("b")[:-1]}),
        ("not_listed", corrupt, 'does not list tensor "c"', {INDEX: index({"a": one}), one: shard("a", "c")}),
        ("not_held", corrupt, 'places tensor "z" in "one.safetensors", which does not hold it',
         {INDEX: index({"a": one, "z": one}), one: shard("a")}),
        ("in_another_shard", corrupt, 'places tensor "a" in "two.safetensors", but "one.safetensors" holds it',
         {INDEX: index({"a": two, "b": two, "c": one}), one: shard("a", "c"), two: shard("b")}),
        ("in_two_shards", corrupt, 'tensor "a" is in two shards', {INDEX: index({"a": one, "b": two}), one: shard("a"),
                                                                  two: shard("a", "b")}),
        # Folders without one checkpoint.
        ("no_index", invalid, "holds 2 safetensors files but no index", good),
        ("two_indices", invalid, "holds several checkpoints",
         {"a.safetensors.index.json": index({}), "b.safetensors.index.json": index({})}),
        ("pickles", "unsupported-feature", "holds weights only as pickles", {"weights.pth": b"\x80\x02."}),
        ("nothing", "not-found", "holds no checkpoint", {"config.json": b"{}"}),
        # Files of torch.save.
        ("torch_before_1_6", "unsupported-feature", "before version 1.6", {"pytorch_model.bin": b"\x80\x02."}),
        ("torch_runs_code", "unsupported-feature", 'it asks for "os.system"',
         {"pytorch_model.bin": torch_file(b"\x80\x02cos\nsystem\nX\x04\0\0\0true\x85R.")}),
        ("torch_deep", "unsupported-feature", "it holds a tuple", {"pytorch_model.bin": torch_file(b"N" + b"\x85" * 100_000 + b".")}),
        ("torch_cut_off", corrupt, "its pickle ends early", {"pytorch_model.bin": torch_file(b"\x80\x02}(")}),
        ("shard_is_folder", invalid, 'one.safetensors" is a folder', {INDEX: index({"a": one}), f"{one}/x": b""}),
    ]
    result = [Case(f"checkpoint/{name}", code, message, write_folder(files)) for name, code, message, files in rows]
    result += [
        Case("checkpoint/shard_is_pipe", invalid, 'pipe.safetensors" is a pipe', shard_is_pipe),
        Case("links/file_out/m", invalid, 'file_out/m/model.safetensors" is a link that leads out of its folder',
             write_folder({"../x.safetensors": shard("a")}, {"model.safetensors": "../x.safetensors"})),
        Case("links/password_file", invalid, '/etc/passwd"',
             write_folder({}, {"model.safetensors": "/etc/passwd"})),
        Case("links/folder_out/m", invalid, 'folder_out/m/sub/one.safetensors" is a link that leads out',
             write_folder({"../out/one.safetensors": shard("a"), INDEX: index({"a": "sub/one.safetensors"})},
                          {"sub": "../out"})),
        Case("links/index_out/m", invalid, 'index_out/m/model.safetensors.index.json" is a link that leads out',
             write_folder({"../index.json": index({"a": one}), one: shard("a")}, {INDEX: "../index.json"})),
        Case("links/other_model/hub/models--a--a/snapshots/1", invalid, "models--b--b/blobs/1",
             write_folder({"../../../models--b--b/blobs/1": shard("a")},
                          {"model.safetensors": "../../../models--b--b/blobs/1"})),
        Case("links/loop", "io", "cannot follow", write_folder({}, {"model.safetensors": "model.safetensors"})),
        Case("links/long_loop", "io", 'long_loop/one.safetensors"',
             write_folder({INDEX: index({"a": one})}, {one: two, two: one})),
        Case("links/dangling", "not-found", 'cannot open "',
             write_folder({}, {"model.safetensors": "gone.safetensors"})),
    ]
    return result
