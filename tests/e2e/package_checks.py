"""Checks of the installed package, for the Python that has it. Needs nothing but the standard library and argosy."""

from __future__ import annotations

import importlib.resources
import importlib.util
import json
import os
import struct
import subprocess
import sys
import sysconfig
import tempfile
import threading
import unittest
from pathlib import Path

import argosy
from argosy.command import find_program

VALUES = struct.pack("<6f", *range(6))


def write_checkpoint(path: Path, truncated: int = 0) -> Path:
    header = {
        "__metadata__": {"format": "pt"},
        "b": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "a": {"dtype": "BF16", "shape": [2], "data_offsets": [24, 28]},
    }
    text = json.dumps(header).encode()
    data = struct.pack("<Q", len(text)) + text + VALUES + b"\1\2\3\4"
    path.write_bytes(data[: len(data) - truncated])
    return path


def run_program(*arguments: str) -> str:
    """The program's output, with nothing on PATH but what is installed beside it."""
    scripts = sysconfig.get_path("scripts")
    command = [str(Path(scripts) / "argosy"), *arguments]
    environment = {"PATH": scripts, "HOME": "/nonexistent"}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


class InstallationTest(unittest.TestCase):
    def test_program_and_package_have_one_version(self) -> None:
        self.assertEqual(run_program("--version"), f"argosy {argosy.__version__}\n")

    def test_export_finds_the_program(self) -> None:
        named = os.environ.pop("ARGOSY_BIN", None)
        try:
            self.assertEqual(find_program(), Path(sysconfig.get_path("scripts")) / "argosy")
            with self.assertRaises(argosy.ExportError) as caught:
                argosy.export("/nonexistent", "pt2", "/nonexistent.pt2")
        finally:
            os.environ.update({} if named is None else {"ARGOSY_BIN": named})
        self.assertEqual(caught.exception.code, "not-found")

    def test_doctor_finds_the_package(self) -> None:
        report = json.loads(run_program("doctor", "--json"))
        self.assertEqual(report["packages"]["argosy"], argosy.__version__)

    def test_package_is_typed(self) -> None:
        package = importlib.resources.files("argosy")
        self.assertTrue(package.joinpath("py.typed").is_file())
        stub = package.joinpath("_core.pyi").read_text()
        self.assertIn("class Checkpoint:", stub)
        self.assertIn("def tensor(self, name: str) -> bytes:", stub)

    def test_schemas_are_written_where_the_program_looks(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "argosy.schemas"]
            done = subprocess.run(command, capture_output=True, text=True, env={"ARGOSY_CACHE": folder}, check=False)
            if importlib.util.find_spec("torch"):
                self.assertEqual(done.returncode, 0, done.stderr)
                text = (Path(folder) / "op_schemas.txt").read_text()
                self.assertIn("\naten::gelu(Tensor self, *, str approximate=", text)
            else:
                self.assertEqual(done.returncode, 1)
                self.assertIn("No module named 'torch'; install it into this Python", done.stderr)


class CheckpointTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = write_checkpoint(self.folder / "x.safetensors")

    def test_names_types_and_bytes(self) -> None:
        for checkpoint in (argosy.open_checkpoint(self.path), argosy.Checkpoint(str(self.path))):
            self.assertEqual(checkpoint.names, ["a", "b"])
            self.assertEqual(len(checkpoint), 2)
            self.assertIn("a", checkpoint)
            self.assertNotIn("c", checkpoint)
            self.assertEqual(checkpoint.total_bytes, 28)
            self.assertEqual(checkpoint.files, [self.path])
            self.assertEqual(checkpoint.metadata, {"format": "pt"})
            self.assertEqual(checkpoint.shape("b"), [2, 3])
            self.assertEqual(checkpoint.dtype("a"), "bf16")
            self.assertEqual(checkpoint.tensor("b"), VALUES)
            self.assertEqual(checkpoint.tensor("a"), b"\1\2\3\4")
            info = checkpoint.tensors[1]
            self.assertEqual((info.name, info.dtype, info.shape, info.bytes), ("b", "f32", [2, 3], 24))
            self.assertEqual(repr(checkpoint.info("b")), "TensorInfo(b f32[2, 3])")

    def test_threads_may_read_at_once(self) -> None:
        checkpoint = argosy.Checkpoint(self.path)
        read: list[bytes] = []
        threads = [
            threading.Thread(target=lambda: read.extend(checkpoint.tensor("b") for _ in range(200))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(read, [VALUES] * 800)

    def test_a_truncated_file_is_an_export_error(self) -> None:
        path = write_checkpoint(self.folder / "y.safetensors", truncated=2)
        with self.assertRaises(argosy.ExportError) as caught:
            argosy.Checkpoint(path)
        self.assertEqual(caught.exception.code, "corrupt-file")
        self.assertTrue(caught.exception.hint)
        self.assertIsNone(caught.exception.node)
        self.assertIsNone(caught.exception.location)
        self.assertIn(str(path), str(caught.exception))

    def test_an_unknown_name_is_an_export_error(self) -> None:
        checkpoint = argosy.Checkpoint(self.path)
        for access in (checkpoint.tensor, checkpoint.shape, checkpoint.dtype, checkpoint.info):
            with self.assertRaises(argosy.ExportError) as caught:
                access("bb")
            self.assertEqual(caught.exception.code, "not-found")


if __name__ == "__main__":
    unittest.main()
