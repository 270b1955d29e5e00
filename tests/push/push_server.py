"""The Hub of the tests, with what uploads need: repositories and branches are made, large files sent, commits taken."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

import yaml
from hub_server import Asked, HubHandler, HubServer, Repository, git_hash, is_large, serve

TOKEN = "hf_of_the_tests"


@dataclass
class Commit:
    repository: str
    branch: str
    summary: str
    paths: list[str]  # added or changed
    deleted: list[str]


@dataclass
class PushHub(HubServer):
    organisations: set[str] = field(default_factory=lambda: {"org"})  # that the token may write to
    objects: dict[str, bytes] = field(default_factory=dict)  # large files that arrived, by SHA-256
    made: list[Commit] = field(default_factory=list)
    #: Answers to requests whose path has this in it: status and message, one entry for each time.
    failing: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    #: Of an upload of so many bytes only half is read; the connection then hangs until the client ends.
    stuck_size: int = 0
    stuck: threading.Event = field(default_factory=threading.Event)
    #: Called before a commit is taken.
    before_commit: list = field(default_factory=list)

    def asked(self, method: str, part: str = "") -> list[str]:
        return [each.path for each in self.log if each.method == method and part in each.path]


@contextmanager
def push_server() -> Iterator[PushHub]:
    hub = PushHub()
    with serve(hub, _PushHandler):
        yield hub


class _PushHandler(HubHandler):
    hub: PushHub

    def do_POST(self) -> None:
        body = self._body()
        if body is None or self._noted() or self._fails():
            return
        path = unquote(urlsplit(self.path).path)
        if path == "/api/validate-yaml":
            return self._validate_card(json.loads(body)["content"])
        if self._token() != TOKEN:
            return self._fail(401, "", "Invalid username or password.")
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path.endswith("/info/lfs/objects/batch"):
            return self._batch(json.loads(body))
        if path.startswith("/verify/"):
            known = json.loads(body)["oid"] in self.hub.objects
            return self._json({}) if known else self._fail(404, "", "no such object")
        # Names of branches are one part of the path: their slashes are escaped.
        *name, action, branch = (unquote(part) for part in urlsplit(self.path).path.removeprefix("/api/models/").split("/"))
        repository = self.hub.repositories.get("/".join(name))
        if repository is None:
            return self._fail(404, "RepoNotFound", "Repository not found")
        if action == "branch":
            repository.references[branch] = repository.references["main"]
            return self._json({}, 201)
        if branch not in repository.references:
            return self._fail(404, "RevisionNotFound", f"Invalid rev id: {branch}")
        files = repository.commits[repository.references[branch]]
        if action == "preupload":
            return self._json({"files": [_mode(each["path"], files) for each in json.loads(body)["files"]]})
        if action == "commit":
            return self._commit("/".join(name), repository, branch, body)
        self._fail(404, "", f"no {action}")

    def do_PUT(self) -> None:
        body = self._body()
        if body is None or self._noted() or self._fails():
            return
        oid = urlsplit(self.path).path.removeprefix("/upload/")
        if hashlib.sha256(body).hexdigest() != oid:
            return self._fail(400, "", "other content than was announced")
        self.hub.objects[oid] = body
        self._send(200, b"", {})

    def _body(self) -> bytes | None:
        size = int(self.headers.get("Content-Length", -1))
        if size < 0:  # in chunks
            body = b""
            while length := int(self.rfile.readline(), 16):
                body += self.rfile.read(length)
                self.rfile.readline()
            self.rfile.readline()
            return body
        if self.command == "PUT" and size == self.hub.stuck_size:
            self.rfile.read(size // 2)
            self.hub.stuck_size = 0
            self.hub.stuck.set()
            self.rfile.read()  # ends with the connection
            return None
        return self.rfile.read(size)

    def _token(self) -> str | None:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None

    def _noted(self) -> bool:
        path = unquote(urlsplit(self.path).path)
        self.hub.log.append(Asked(self.command, path, None, self._token()))
        return False

    def _fails(self) -> bool:
        for part, answers in self.hub.failing.items():
            if part in self.path and answers:
                status, message = answers.pop(0)
                self._fail(status, "", message)
                return True
        return False

    def _json(self, content: dict, status: int = 200) -> None:
        self._send(status, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _validate_card(self, text: str) -> None:
        parts = text.split("---\n")
        try:
            valid = len(parts) > 2 and not parts[0] and isinstance(yaml.safe_load(parts[1]), dict)
        except yaml.YAMLError as error:
            return self._json({"errors": [{"message": str(error)}], "warnings": []}, 400)
        self._json({"errors": [], "warnings": [] if valid else [{"message": "empty or missing yaml metadata in repo card"}]})

    def _create(self, asked: dict) -> None:
        name = f"{asked['organization']}/{asked['name']}"
        if asked["organization"] not in self.hub.organisations:
            return self._fail(403, "", f"You don't have the rights to create a model under the namespace {asked['organization']}")
        if name in self.hub.repositories:
            return self._fail(409, "", "You already created this model repo")
        self.hub.add(name, {".gitattributes": b""}, private=asked.get("visibility") == "private")
        self._json({"url": f"{self.hub.url}/{name}", "name": name})

    def _batch(self, asked: dict) -> None:
        rows = []
        for each in asked["objects"]:
            row = {"oid": each["oid"], "size": each["size"]}
            if each["oid"] not in self.hub.objects:
                places = {"upload": f"/upload/{each['oid']}", "verify": f"/verify/{each['oid']}"}
                row["actions"] = {name: {"href": self.hub.url + place} for name, place in places.items()}
            rows.append(row)
        self._json({"transfer": "basic", "objects": rows})

    def _commit(self, name: str, repository: Repository, branch: str, body: bytes) -> None:
        if self.hub.before_commit:
            self.hub.before_commit.pop()()
        header, *lines = (json.loads(line) for line in body.splitlines())
        if header["value"].get("parentCommit") not in (None, repository.references[branch]):
            return self._fail(412, "", "A commit has happened since. Please refresh and try again.")
        files = dict(repository.commits[repository.references[branch]])
        made = Commit(name, branch, header["value"]["summary"], [], [])
        for line in lines:
            value = line["value"]
            path = value["path"]
            if line["key"] == "deletedFile":
                del files[path]
                made.deleted.append(path)
                continue
            if line["key"] == "lfsFile" and value["oid"] not in self.hub.objects:
                return self._fail(400, "", f"{path} was not sent")
            files[path] = self.hub.objects[value["oid"]] if line["key"] == "lfsFile" else base64.b64decode(value["content"])
            made.paths.append(path)
        self.hub.made.append(made)
        commit = self.hub.add(name, files, branch)
        self._json({"commitUrl": f"{self.hub.url}/{name}/commit/{commit}", "commitOid": commit})


def _mode(path: str, files: dict[str, bytes]) -> dict:
    row = {"path": path, "uploadMode": "lfs" if is_large(path) else "regular", "shouldIgnore": False}
    if path in files:
        row["oid"] = hashlib.sha256(files[path]).hexdigest() if is_large(path) else git_hash(files[path])
    return row
