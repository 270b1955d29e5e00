"""Captures, weight plans and checks that others share: a machine without Python exports with them, and what was tampered with is
refused by name."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_tool import REPOSITORY
from registry_machine import MODEL, PROGRAM, Machine, http, refused, refusing
from warm import warm_python

pytest.importorskip("torch", reason="captures are made with it")
pytest.importorskip("transformers", reason="captures are made with it")

KINDS = ("captures", "plans", "checks")


@dataclass
class Shared:
    """What one machine made, and the registry that it pushed it to."""

    folder: Path
    key: str
    cache: Path
    registry: Path
    signing: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """With Python, once."""
    folder = tmp_path_factory.mktemp("made")
    environment = {**os.environ, "ARGOSY_CACHE": str(folder / "cache"), "ARGOSY_PYTHON": warm_python(), "OMP_NUM_THREADS": "1",
                   "PYTHONPATH": str(REPOSITORY / "python")}  # fmt: skip

    def run(*arguments: str | Path) -> str:
        return subprocess.run([str(PROGRAM), *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout

    run("export", "pt2", "--model", MODEL, folder / "out.pt2")
    run("capture", "--model", MODEL, "--dtype", "float32", "-o", folder / "other.capture")
    key = run("cache", "keygen", folder / "signing").strip()
    run("cache", "push", folder / "registry", "--sign", folder / "signing")
    return Shared(folder, key, folder / "cache", folder / "registry", folder / "signing")


@pytest.fixture
def shared(made: Shared, tmp_path: Path) -> Shared:
    """A copy, to be tampered with."""
    shutil.copytree(made.registry, tmp_path / "registry", symlinks=True)
    shutil.copytree(made.cache, tmp_path / "made-cache")
    return Shared(tmp_path, made.key, tmp_path / "made-cache", tmp_path / "registry", made.signing)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address that ``argosy cache serve`` has for a folder."""
    process = subprocess.Popen([PROGRAM, "cache", "serve", folder, "--port", "0"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield process.stderr.readline().split()[-1]
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def key_of(shared: Shared, machine: Machine) -> str:
    """The key of the capture that the tests ask for."""
    (shared.folder / "none").mkdir()
    said = machine.capture(shared.folder / "none", shared.key, code=1)
    return said.split("has nothing under ")[1].split()[0]


# ---- what is right -----------------------------------------------------------------------------------------------------


def test_a_cold_machine_without_python_exports_within_a_second(made: Shared, machine: Machine) -> None:
    with served(made.registry) as address:
        seconds = []
        for number in range(3):
            shutil.rmtree(machine.folder / "cache", ignore_errors=True)
            start = time.perf_counter()
            said = machine.export(address, made.key)
            seconds.append(time.perf_counter() - start)
            assert "it passed elsewhere" in said and "Verified" in said, number
            assert all(f"from the registry {address}: {kind}/" in said for kind in KINDS)
    assert min(seconds) < 1
    assert (machine.folder / "out.pt2").read_bytes() == (made.folder / "out.pt2").read_bytes()
    assert "in the cache" not in machine.run("export", "pt2", "--model", MODEL, machine.folder / "again.pt2")  # and needs it no more


def test_settings_name_registry_and_keys(made: Shared, machine: Machine) -> None:
    (machine.folder / "settings/argosy").mkdir(parents=True)
    (machine.folder / "settings/argosy/registry-keys.txt").write_text(f"# ours\n\n{made.key} the build machine\n")
    out = machine.folder / "out.capture"
    machine.run("capture", "--model", MODEL, "-o", out, ARGOSY_REGISTRY=str(made.registry), http_proxy="http://127.0.0.1:9")
    assert out.is_file()
    (machine.folder / "keys").write_text(made.key)
    shutil.rmtree(machine.folder / "cache")
    machine.run("capture", "--model", MODEL, "-o", out, ARGOSY_REGISTRY=str(made.registry), ARGOSY_REGISTRY_KEYS=str(machine.folder / "keys"))


def test_pull_takes_all_of_a_folder_and_keys_of_a_server(made: Shared, machine: Machine) -> None:
    trusted = ("--registry-key", made.key)
    said = machine.run("cache", "pull", "--registry", made.registry, *trusted)
    assert f"new in {machine.folder / 'cache'}: 4 entries" in said
    assert "0 entries" in machine.run("cache", "pull", "--registry", made.registry, *trusted)
    shutil.rmtree(machine.folder / "cache")
    key = next((made.registry / "plans").iterdir()).name
    with served(made.registry) as address:
        assert "1 entry" in machine.run("cache", "pull", key, "--registry", address, *trusted)
        assert "give whole keys" in machine.run("cache", "pull", "--registry", address, *trusted, code=1)
        assert "has nothing under" in machine.run("cache", "pull", "0" * 64, "--registry", address, *trusted, code=1)


def test_push_adds_what_is_new_and_leaves_the_rest_alone(shared: Shared, machine: Machine) -> None:
    before = {path: path.stat().st_mtime_ns for path in shared.registry.rglob("*")}
    push = ("cache", "push", shared.registry, "--sign", shared.signing)
    assert "0 entries" in machine.run(*push, ARGOSY_CACHE=str(shared.cache))
    assert {path: path.stat().st_mtime_ns for path in shared.registry.rglob("*")} == before
    folder = next((shared.cache / "checks").iterdir())
    report = json.loads(next(folder.glob("*.json")).read_text()) | {"cpu_seconds": 1}
    add_entry(shared.cache, "checks", folder.name, json.dumps(report).encode())
    assert "1 entry" in machine.run(*push, ARGOSY_CACHE=str(shared.cache))
    index = json.loads((shared.registry / "checks" / folder.name / "index.json").read_text())
    assert index["serial"] == 2 and len(index["entries"]) == 2


def test_others_do_not_push_under_our_indices(shared: Shared, machine: Machine) -> None:
    machine.run("cache", "keygen", machine.folder / "theirs")
    folder = next((shared.cache / "checks").iterdir())
    add_entry(shared.cache, "checks", folder.name, b"{}")
    said = machine.run("cache", "push", shared.registry, "--sign", machine.folder / "theirs", code=1, ARGOSY_CACHE=str(shared.cache))
    assert "not signed by a key that is trusted" in said and "push into a folder that this key signs" in said


def test_signing_keys_are_their_owners_alone(machine: Machine, shared: Shared) -> None:
    path = machine.folder / "key"
    public = machine.run("cache", "keygen", path).strip()
    assert len(public) == 64 and path.stat().st_mode & 0o777 == 0o600 and public not in path.read_text()
    assert "cannot create" in machine.run("cache", "keygen", path, code=1)
    path.chmod(0o644)
    assert "others may read" in machine.run("cache", "push", shared.registry, "--sign", path, code=1)
    (machine.folder / "none").touch(0o600)
    assert "is no signing key" in machine.run("cache", "push", shared.registry, "--sign", machine.folder / "none", code=1)


def test_without_a_trusted_key_the_registry_is_not_asked(made: Shared, machine: Machine) -> None:
    arguments = ("capture", "--model", MODEL, "-o", machine.folder / "x", "--registry")
    with refusing(b"") as (address, requests):
        assert "no key is trusted" in machine.run(*arguments, address, code=1)
    assert not requests
    assert "is not a public key" in machine.run(*arguments, made.registry, "--registry-key", "00", code=1)


@pytest.mark.parametrize("location", ["https://host/x", "http://user@host/", "http://", "http://host:0", "http://host/?x", "ftp://host"])
def test_what_is_no_address(machine: Machine, made: Shared, location: str) -> None:
    said = machine.capture(location, made.key, code=1)
    assert "the registry is not used" in said and f'the registry "{location}"' in said


def test_the_server_gives_nothing_but_a_registrys_files(shared: Shared) -> None:
    (shared.registry / "secret.txt").write_text("secret")
    folder = next((shared.registry / "plans").iterdir())
    (folder / ("0" * 64 + ".json")).symlink_to("/etc/passwd")
    with served(shared.registry) as address:
        host, port = address.removeprefix("http://").split(":")

        def ask(line: str) -> bytes:
            with socket.create_connection((host, int(port)), timeout=10) as client:
                client.sendall(f"{line} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                return b"".join(iter(lambda: client.recv(4096), b""))

        name = f"/plans/{folder.name}/index.json"
        assert ask(f"GET {name}").endswith((folder / "index.json").read_bytes())
        assert ask(f"HEAD {name}").endswith(b"\r\n\r\n") and b"200 OK" in ask(f"HEAD {name}")
        for path in ("/secret.txt", "/", "/../secret.txt", "//etc/passwd", f"/plans/{folder.name}/", f"/plans/{folder.name}/../index.json"):
            assert ask(f"GET {path}").startswith(b"HTTP/1.1 404"), path
        assert ask(f"GET /plans/{folder.name}/{'0' * 64}.json").startswith(b"HTTP/1.1 403")
        assert ask(f"POST {name}").startswith(b"HTTP/1.1 405")
        assert ask("nonsense").startswith(b"HTTP/1.1 400")


# ---- tampering with files ------------------------------------------------------------------------------------------------


def add_entry(cache: Path, kind: str, key: str, contents: bytes, *, alone: bool = False) -> None:
    """An entry of a cache, newer than the others."""
    import hashlib

    folder = cache / kind / key
    if alone:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(contents).hexdigest()}.{'capture' if kind == 'captures' else 'json'}"
    path.write_bytes(contents)
    os.utime(path, (time.time() + 5, time.time() + 5))


@dataclass
class Scene:
    """The registry that is tampered with; ``key`` and ``entry`` are of the capture that will be asked for."""

    shared: Shared
    machine: Machine
    key: str

    @property
    def folder(self) -> Path:
        return self.shared.registry / "captures" / self.key

    @property
    def entry(self) -> Path:
        return next(self.folder.glob("*.capture"))

    @property
    def index(self) -> Path:
        return self.folder / "index.json"

    @property
    def signatures(self) -> Path:
        return self.folder / "index.json.sig"

    @property
    def other(self) -> Path:
        return next(path for path in (self.shared.registry / "captures").iterdir() if path.name != self.key)

    def push(self, *, signing: Path | None = None) -> None:
        self.machine.run("cache", "push", self.shared.registry, "--sign", signing or self.shared.signing,
                         ARGOSY_CACHE=str(self.shared.cache))  # fmt: skip

    def push_alone(self, kind: str, key: str, contents: bytes) -> None:
        """By the one who is trusted, in the place of what is there."""
        add_entry(self.shared.cache, kind, key, contents, alone=True)
        shutil.rmtree(self.shared.registry / kind / key)
        self.push()

    def only(self, kind: str) -> Path:
        return next((self.shared.registry / kind).iterdir())


def flip(path: Path, place: int = -40) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def swap(scene: Scene) -> None:
    """The bytes of one capture under the name of another."""
    one, other = scene.entry, next(scene.other.glob("*.capture"))
    mine, theirs = one.read_bytes(), other.read_bytes()
    one.write_bytes(theirs)
    other.write_bytes(mine)


def same_size(scene: Scene) -> None:
    scene.entry.write_bytes(bytes(scene.entry.stat().st_size))


def other_folder(scene: Scene) -> None:
    shutil.rmtree(scene.folder)
    shutil.copytree(scene.other, scene.folder)


def other_kind(scene: Scene) -> None:
    shutil.copy(scene.only("plans") / "index.json", scene.index)
    shutil.copy(scene.only("plans") / "index.json.sig", scene.signatures)


def stranger(scene: Scene) -> None:
    scene.machine.run("cache", "keygen", scene.machine.folder / "stranger")
    shutil.rmtree(scene.shared.registry)
    scene.push(signing=scene.machine.folder / "stranger")


def stale(scene: Scene) -> None:
    """The index before the last one, after the last one was seen."""
    shutil.copytree(scene.folder, scene.shared.folder / "before")
    add_entry(scene.shared.cache, "captures", scene.key, next(scene.other.glob("*.capture")).read_bytes())
    scene.push()
    scene.machine.capture(scene.shared.registry, scene.shared.key)
    shutil.rmtree(scene.machine.folder / "cache/captures")
    shutil.rmtree(scene.folder)
    shutil.copytree(scene.shared.folder / "before", scene.folder)


def rewrite(change: Callable[[dict], object]) -> Callable[[Scene], None]:
    def tamper(scene: Scene) -> None:
        index = json.loads(scene.index.read_text())
        change(index)
        scene.index.write_text(json.dumps(index, indent=2) + "\n")

    return tamper


def link(path: Callable[[Scene], Path]) -> Callable[[Scene], None]:
    def tamper(scene: Scene) -> None:
        target = path(scene)
        target.rename(scene.shared.folder / "elsewhere")
        target.symlink_to(scene.shared.folder / "elsewhere")

    return tamper


def pipe(scene: Scene) -> None:
    scene.index.unlink()
    os.mkfifo(scene.index)


def folder_for_a_file(scene: Scene) -> None:
    scene.index.unlink()
    scene.index.mkdir()


FILES: dict[str, tuple[Callable[[Scene], object], str]] = {
    "flipped-byte": (lambda scene: flip(scene.entry), "have another hash than its name says"),
    "truncated": (lambda scene: cut(scene.entry), "bytes, by its index it has"),
    "too-long": (lambda scene: grow(scene.entry), "bytes, by its index it has"),
    "zeros": (same_size, "have another hash than its name says"),
    "wrong-hash-name": (lambda scene: scene.entry.rename(scene.folder / ("0" * 64 + ".capture")), "is not there, though its index names it"),
    "entries-swapped": (swap, "bytes, by its index it has|have another hash"),
    "index-of-another-key": (other_folder, "is the index of another key"),
    "index-of-another-kind": (other_kind, "is the index of another key, plans/"),
    "flipped-signature": (lambda scene: flip_hex(scene.signatures), "its signature does not fit what it says"),
    "unknown-key": (stranger, "not signed by a key that is trusted"),
    "no-signatures": (lambda scene: scene.signatures.unlink(), "has no file of signatures"),
    "empty-signatures": (lambda scene: scene.signatures.write_text(""), "it has 0 signatures"),
    "malformed-signatures": (lambda scene: scene.signatures.write_text("ed25519 00 11\n"), "a line that is no signature"),
    "many-signatures": (lambda scene: scene.signatures.write_text("x\n" * 100), "it has 100 signatures"),
    "huge-signatures": (lambda scene: scene.signatures.write_text("x" * 20000), "at most 16384 are read"),
    "stale-index": (stale, "is older than one that was there before"),
    "other-hash-in-the-index": (rewrite(lambda index: index["entries"][0].update(hash="0" * 64)), "signature does not fit"),
    "names-that-lead-out": (rewrite(lambda index: index["entries"][0].update(hash="../../../../etc/passwd")), "signature does not fit"),
    "other-serial": (rewrite(lambda index: index.update(serial=99)), "signature does not fit"),
    "no-json": (lambda scene: scene.index.write_text("hello"), "it is no JSON"),
    "huge-index": (lambda scene: scene.index.write_bytes(b"{" + b" " * (1 << 19)), "at most 262144 are read"),
    "entry-is-a-link": (link(lambda scene: scene.entry), "is a link"),
    "index-is-a-link": (link(lambda scene: scene.index), "is a link"),
    "folder-is-a-link": (link(lambda scene: scene.folder), "is a link"),
    "pipe": (pipe, "is no regular file"),
    "folder-for-a-file": (folder_for_a_file, "is no regular file"),
    "signed-other-configuration": (lambda scene: scene.push_alone("captures", scene.key, other_capture()), "of another configuration"),
    "signed-nonsense": (lambda scene: scene.push_alone("captures", scene.key, b"nonsense"), "zip|capture"),
}  # fmt: skip


def flip_hex(path: Path) -> None:
    text = path.read_text().rstrip("\n")
    path.write_text(text[:-1] + ("0" if text[-1] != "0" else "1") + "\n")


def other_capture() -> bytes:
    return (REPOSITORY / "tests/capture/version_1.capture").read_bytes()


@pytest.mark.parametrize("kind", FILES)
def test_tampering_with_a_folder_is_refused(shared: Shared, machine: Machine, kind: str) -> None:
    tamper, words = FILES[kind]
    scene = Scene(shared, machine, key_of(shared, machine))
    tamper(scene)
    cache = machine.folder / "cache"
    refused(machine, shared.registry, shared.key, words)
    assert not list(cache.glob("captures/*/*.capture"))


@pytest.mark.parametrize(
    ("kind", "words"),
    [("plans", "for tensors of other names or shapes"), ("checks", "did not pass|is not the result of a check|the check is one of")],
)
def test_signed_entries_that_are_for_others_are_refused(shared: Shared, machine: Machine, kind: str, words: str) -> None:
    import re

    scene = Scene(shared, machine, key_of(shared, machine))
    key = scene.only(kind).name
    document = json.loads(next((shared.cache / kind / key).glob("*.json")).read_text())
    changes = [{"checkpoint_hash": "0" * 64}] if kind == "plans" else [{"ok": False}, {"engine": "onnx"}, {"format": "x"}]
    for change in changes:
        scene.push_alone(kind, key, json.dumps(changed(document, change)).encode())
        shutil.rmtree(machine.folder / "cache", ignore_errors=True)
        said = machine.export(shared.registry, shared.key, code=1 if kind == "plans" else 0)
        assert re.search(words, said), said
        if kind == "checks":
            assert "Not verified" in said


def changed(document: dict, change: dict) -> dict:
    """``document`` with these values, wherever it has the names."""
    found = dict(document)
    for name, value in change.items():
        for holder in [found, *[each for each in found.values() if isinstance(each, dict)]]:
            if name in holder:
                holder[name] = value
    return found


def test_a_server_that_says_another_length_than_the_index(made: Shared, machine: Machine) -> None:
    def answer(request: bytes) -> Iterator[bytes]:
        path = made.registry / request.split()[1].decode().lstrip("/")
        yield http(path.read_bytes(), Content_Length=path.stat().st_size + (path.suffix == ".capture"))

    with refusing(answer) as (address, _):
        refused(machine, address, made.key, "bytes, by its index it has")
