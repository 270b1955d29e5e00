"""A small server that speaks as much of the Hub's API as downloads of models need, for tests. Uploads: push_server.py.

Repositories are dicts of revisions, each a dict of files. What was asked is in `log`; `cut` breaks connections off.
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit


@dataclass
class Repository:
    """Files by name, for each commit; branches and tags that name commits."""

    commits: dict[str, dict[str, bytes]]
    references: dict[str, str]
    token: str | None = None  # only who has it may read
    gated: bool = False
    private: bool = False

    def commit_of(self, revision: str) -> str | None:
        return self.references.get(revision, revision if revision in self.commits else None)


@dataclass
class Asked:
    method: str
    path: str
    range: str | None
    token: str | None


@dataclass
class HubServer:
    repositories: dict[str, Repository] = field(default_factory=dict)
    log: list[Asked] = field(default_factory=list)
    #: File name to how many bytes of it are sent before the connection breaks, one entry for each time.
    cut: dict[str, list[int]] = field(default_factory=dict)
    #: Answers other than a repository's, by path: what a picture's URL gives, say.
    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    url: str = ""

    def add(self, name: str, files: dict[str, bytes] | Path, revision: str = "main", **settings) -> str:
        """Puts files (or those of a folder) on a branch; the commit."""
        if isinstance(files, Path):
            folder = files
            files = {
                path.relative_to(folder).as_posix(): path.read_bytes()
                for path in sorted(folder.rglob("*"))
                if path.is_file()
            }
        content = b"".join(key.encode() + value for key, value in sorted(files.items()))
        commit = hashlib.sha1(content).hexdigest()
        repository = self.repositories.setdefault(name, Repository({}, {}, **settings))
        repository.commits[commit] = files
        repository.references[revision] = commit
        return commit

    def downloads(self, name: str = "") -> list[Asked]:
        """Requests for the content of files whose path ends so."""
        return [
            asked
            for asked in self.log
            if asked.method == "GET" and "/resolve/" in asked.path and asked.path.endswith(name)
        ]

    def environment(self, home: Path) -> dict[str, str]:
        """Variables that make a process use this Hub, and nothing of the user's."""
        return {"HF_ENDPOINT": self.url, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}


@contextmanager
def hub_server() -> Iterator[HubServer]:
    hub = HubServer()
    with serve(hub, HubHandler):
        yield hub


@contextmanager
def serve(hub: HubServer, handler: type[HubHandler]) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class HubHandler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        self.hub.log.append(Asked(self.command, path, self.headers.get("Range"), token))
        if path in self.hub.pages:
            kind, content = self.hub.pages[path]
            return self._send(200, content, {"Content-Type": kind})
        is_api = path.startswith("/api/models/")
        parts = (path.removeprefix("/api/models/") if is_api else path[1:]).split("/")
        name, rest = "/".join(parts[:2]), parts[2:]
        repository = self.hub.repositories.get(name)
        if repository is None or (repository.token not in (None, token) and not repository.gated):
            # The Hub does not tell private repositories from missing ones.
            return self._fail(401 if token is None else 404, "RepoNotFound", "Repository not found")
        if repository.gated and repository.token not in (None, token) and not is_api:
            return self._fail(403 if token else 401, "GatedRepo", f"Access to model {name} is restricted")
        if is_api:
            return self._describe(name, repository, rest)
        if rest[:1] == ["resolve"]:
            return self._send_file(repository, "/".join(rest[1:]))
        self._fail(404, "EntryNotFound", "Entry not found")

    def _describe(self, name: str, repository: Repository, rest: list[str]) -> None:
        kind, revision = (rest[0], "/".join(rest[1:])) if rest else ("revision", "main")
        if kind == "tree":
            revision = rest[1]
        commit = repository.commit_of(revision)
        if commit is None:
            return self._fail(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        files = repository.commits[commit]
        if kind == "tree":
            folder = "/".join(rest[2:])
            inside = [key for key in files if not folder or key.startswith(folder + "/")]
            if folder and not inside:
                return self._fail(404, "EntryNotFound", f"{folder} does not exist")
            rows = [{"type": "file", "path": key, "size": len(files[key]), "oid": git_hash(files[key])} for key in inside]
            return self._send(200, json.dumps(rows).encode(), {"Content-Type": "application/json"})
        siblings = [_sibling(key, value) for key, value in files.items()]
        answer = {"_id": name, "id": name, "modelId": name, "sha": commit, "private": repository.private, "gated": False}
        answer |= {"siblings": siblings, "tags": [], "downloads": 0, "likes": 0}
        self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _send_file(self, repository: Repository, path: str) -> None:
        # Names of revisions may have slashes; the longest that is known counts.
        known = [*repository.references, *repository.commits]
        revision = max((each for each in known if path.startswith(each + "/")), key=len, default=None)
        if revision is None:
            return self._fail(404, "RevisionNotFound", "Invalid rev id")
        name = path[len(revision) + 1 :]
        commit = repository.commit_of(revision)
        content = repository.commits[commit].get(name)
        if content is None:
            return self._fail(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
        etag = hashlib.sha256(content).hexdigest() if is_large(name) else git_hash(content)
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        wanted = self.headers.get("Range")
        if wanted is None:
            return self._send(200, content, headers, name)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        part = content[int(first) : int(last) + 1 if last else None]
        headers["Content-Range"] = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
        self._send(206, part, headers, name)

    def _send(self, status: int, content: bytes, headers: dict[str, str], name: str = "") -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "HEAD":
            return
        cuts = self.hub.cut.get(name, [])
        if cuts:
            self.wfile.write(content[: cuts.pop(0)])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.wfile.write(content)

    def _fail(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        body = json.dumps({"error": message}).encode()
        self._send(status, body, {"X-Error-Code": code, "X-Error-Message": message, **(headers or {})})


def is_large(name: str) -> bool:
    """Whether the Hub keeps a file outside of git, under its SHA-256."""
    return name.endswith((".safetensors", ".bin", ".onnx")) or ".onnx_data" in name


def _sibling(name: str, content: bytes) -> dict[str, object]:
    row: dict[str, object] = {"rfilename": name, "size": len(content), "blobId": git_hash(content)}
    if is_large(name):
        row["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
    return row


def git_hash(content: bytes) -> str:
    """What git calls a file of this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
