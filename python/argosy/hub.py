"""``python -m argosy.hub --repo ORG/NAME``: downloads of a model on the Hub what an export reads, into the Hub's cache.

The command-line tool starts it when the cache lacks something. Progress and errors are JSON objects, one a line, on stderr;
the folder is the only line on stdout. Tokens are huggingface_hub's business: HF_TOKEN, or what ``hf auth login`` left.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from .errors import ExportError

#: Small files that a model has beside its weights: settings, tokenizer, processor, templates, card, licence.
_SMALL = ("*.json", "*.jinja", "*.model", "*.tiktoken", "*.txt", "additional_chat_templates/*.jinja",
          "*_Pooling/config.json", "*_Dense/config.json",
          # what a bundle's own card is made of, and what has to go with it
          "README.md", "LICENSE*", "LICENCE*", "NOTICE*", "USE_POLICY*", "COPYING*")  # fmt: skip
#: What of a configuration-only download is kept: nothing else can change a capture.
_CONFIGURATION = ("config.json", "generation_config.json")
_INDEX = ".safetensors.index.json"
#: What torch.save wrote, and is read without running code: in this order, where there are no safetensors.
_TORCH_FILES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
#: Weights that are not read.
_OTHERS = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.msgpack", "*.h5")
#: Files up to this size are begun again instead of being resumed.
_SMALL_BYTES = 1 << 20

Report = Callable[..., None]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m argosy.hub", description=__doc__)
    parser.add_argument("--repo", required=True, help="ORG/NAME")
    parser.add_argument("--revision", help="a branch, a tag or a commit; by default main")
    parser.add_argument("--cache", type=Path, help="the Hub's cache, if not where huggingface_hub has it")
    parser.add_argument("--weights", action="store_true", help="also tokenizer, processor and the files of weights")
    parser.add_argument("--code", action="store_true", help="also Python files that come with the model")
    options = parser.parse_args(arguments)

    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # read when huggingface_hub is imported

    def report(**values: Any) -> None:
        print(json.dumps(values), file=sys.stderr, flush=True)

    try:
        folder = download(options.repo, options.revision, options.cache, options.weights, options.code, report)
    except ExportError as error:
        report(error=error.code, message=error.message, hint=error.hint)
        return 1
    print(folder)
    return 0


def download(
    repo: str,
    revision: str | None = None,
    cache: Path | None = None,
    weights: bool = False,
    code: bool = False,
    report: Report = lambda **values: None,
) -> Path:
    """Downloads what is missing and returns the snapshot's folder. `ExportError` for all that can go wrong.

    Files of one commit: the one that `revision` stands for when the download begins. A file that was broken off is resumed
    where it ended, also by a later process.
    """
    try:
        from huggingface_hub import HfApi, constants
    except ImportError as error:
        raise ExportError(
            "the download needs huggingface_hub", code="not-found", hint="pip install huggingface_hub"
        ) from error
    cache = cache or Path(constants.HF_HUB_CACHE)
    with _explained(repo, revision or "main"):
        report(stage=f"asking {constants.ENDPOINT} for {repo}")
        info = HfApi().model_info(repo, revision=revision, files_metadata=True)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or () if _is_plain(file.rfilename)}
        if "config.json" not in sizes:
            raise ExportError(
                f"{repo} has no config.json", code="unsupported-feature", hint="it is no model of transformers"
            )
        main_file = _main_file(repo, list(sizes)) if weights else ""
        # By its revision, so that the cache notes which commit that is; all else by the commit.
        get = _Getter(repo, cache, report)
        folder = Path(get(revision or "main", "config.json")).parent
        commit = folder.name
        names = [name for name in sizes if _matches(name, _SMALL if weights else _CONFIGURATION)]
        names = [name for name in names if not name.endswith(".index.json")]
        if code:
            names += [name for name in sizes if name.endswith(".py")]
        if weights:
            names.append(main_file)
        if main_file.endswith(".index.json"):
            names += _shards(repo, Path(get(commit, main_file)), sizes)
        names = list(dict.fromkeys(names))
        get.total = sum(sizes[name] for name in names)
        for name in names:
            get(commit, name, sizes[name])
        report(stage="done", folder=str(folder), commit=commit, files=len(names))
    return folder


def _is_plain(name: str) -> bool:
    """Whether a name stays inside its folder, whatever the server says."""
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and "\\" not in name and "\0" not in name


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a file's name is one of the patterns, in whose folder it has to be."""
    return any(fnmatch(name, pattern) and name.count("/") == pattern.count("/") for pattern in patterns)


def _main_file(repo: str, names: list[str]) -> str:
    """The file that says what a checkpoint holds, by the rule by which it is found in a folder."""
    indices = sorted(name for name in names if "/" not in name and name.endswith(_INDEX))
    files = sorted(name for name in names if _matches(name, ("*.safetensors",)))
    if "model.safetensors" in files:
        return "model.safetensors"
    if len(indices) == 1 or (not indices and len(files) == 1):
        return (indices or files)[0]
    if indices or files:
        raise ExportError(
            f"{repo} has several checkpoints: {_listed(indices or files)}",
            code="unsupported-feature",
            hint="download one of them and give its folder",
        )
    for name in _TORCH_FILES:
        if name in names:
            return name
    others = sorted(name for name in names if _matches(name, _OTHERS))
    if others:
        raise ExportError(
            f"{repo} has weights in forms that are not read: {_listed(others)}",
            code="unsupported-feature",
            hint="look for a revision with safetensors (--revision refs/pr/…), or load the model where you trust it "
            "and save it with save_pretrained",
        )
    raise ExportError(f"{repo} has no weights", code="not-found", hint="check the name and the revision")


def _shards(repo: str, index: Path, sizes: dict[str, int]) -> list[str]:
    try:
        shards = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ExportError(f"{repo} has an unreadable {index.name}", code="invalid-input") from error
    missing = [str(name) for name in shards if name not in sizes]
    if missing:
        raise ExportError(
            f"{repo} lacks shards that {index.name} names: {_listed(missing)}",
            code="not-found",
            hint="try another revision",
        )
    return shards


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


class _Getter:
    """Gets files one after the other and reports how many bytes are there."""

    def __init__(self, repo: str, cache: Path, report: Report) -> None:
        self.repo, self.cache, self.report = repo, cache, report
        self.total = self.done = 0
        self.shown = 0.0

    def __call__(self, revision: str, name: str, size: int = 0) -> str:
        from huggingface_hub import hf_hub_download

        before = self.done
        if size > _SMALL_BYTES:
            self.report(stage=f"downloading {name}", bytes_done=self.done, bytes_total=self.total)
            self._fill_blob(revision, name)
        path = hf_hub_download(self.repo, name, revision=revision, cache_dir=self.cache, tqdm_class=self._bar())
        self.done = before + size
        self._show(at_once=self.done == self.total)
        return path

    def _fill_blob(self, revision: str, name: str) -> None:
        """Brings a file's bytes where huggingface_hub looks for them. Its own downloads begin anew after the process ended;
        this one leaves what it got under a fixed name. Files in Xet storage have a way of their own."""
        from filelock import FileLock
        from huggingface_hub import file_download, hf_hub_url
        from huggingface_hub.utils import build_hf_headers

        folder = self.cache / file_download.repo_folder_name(repo_id=self.repo, repo_type="model")
        url = hf_hub_url(self.repo, name, revision=revision)
        found = file_download.get_hf_file_metadata(url, token=None)
        if not found.etag or not _is_plain(found.etag) or not found.size or getattr(found, "xet_file_data", None):
            return
        blob = folder / "blobs" / found.etag
        partial = blob.with_name(f"{found.etag}.argosy-incomplete")
        lock = self.cache / ".locks" / folder.name / f"{found.etag}.argosy.lock"
        for path in (partial, lock):
            path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock):
            if blob.exists():
                return
            resumed = partial.stat().st_size if partial.exists() else 0
            if resumed > found.size:
                partial.unlink()
                resumed = 0
            self._update(resumed)
            with partial.open("ab") as file:
                file_download.http_get(
                    found.location,
                    file,
                    resume_size=resumed,
                    headers=build_hf_headers(token=None if _same_host(found.location, url) else False),
                    expected_size=found.size,
                    tqdm_class=self._bar(),
                )
            # The parts came from two connections or more; the name of a large file is its SHA-256.
            if resumed and len(found.etag) == 64 and _sha256(partial) != found.etag:
                partial.unlink()
                raise ExportError(f"{name} was damaged on its way", code="io", hint="run this again")
            partial.replace(blob)

    def _bar(self) -> Any:
        getter = self

        class Bar:
            """What huggingface_hub calls in place of a progress bar."""

            def __init__(self, *args: Any, **kwargs: Any) -> None: ...

            def __enter__(self) -> Bar:
                return self

            def __exit__(self, *error: object) -> None: ...

            def update(self, count: float | None = 1) -> None:
                getter._update(int(count or 0))

            def __getattr__(self, name: str) -> Any:  # refresh, close, set_postfix_str, …
                return lambda *args, **kwargs: None

        return Bar

    def _update(self, count: int) -> None:
        self.done += count
        self._show()

    def _show(self, at_once: bool = False) -> None:
        if self.total and (at_once or time.monotonic() - self.shown > 0.1):
            self.shown = time.monotonic()
            self.report(bytes_done=min(self.done, self.total), bytes_total=self.total)


def _same_host(one: str, other: str) -> bool:
    """A token goes to the Hub alone, not to where it keeps its files."""
    from urllib.parse import urlsplit

    return urlsplit(one).netloc == urlsplit(other).netloc


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _explained(repo: str, revision: str) -> Iterator[None]:
    """What huggingface_hub raises as an `ExportError` that says what to do. No message holds a token: none is asked for."""
    from huggingface_hub import constants, errors

    try:
        yield
    except ExportError:
        raise
    except errors.GatedRepoError as error:
        raise ExportError(
            f"{repo} is gated: its owners have not given this token access, or there is no token",
            code="not-found",
            hint=f"ask for access at {constants.ENDPOINT}/{repo}, then run hf auth login or set HF_TOKEN",
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise ExportError(
            f"the Hub has no model {repo}, or it is private",
            code="not-found",
            hint="check the name; for a private model run hf auth login or set HF_TOKEN",
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ExportError(
            f"{repo} has no revision {revision}", code="not-found", hint="--revision is a branch, a tag or a commit"
        ) from error
    except errors.HFValidationError as error:
        raise ExportError(f"{repo} is no name on the Hub: {error}", code="invalid-input", hint="ORG/NAME") from error
    except errors.OfflineModeIsEnabled as error:
        raise ExportError(
            f"{repo} is not downloaded: offline", code="not-found", hint="unset HF_HUB_OFFLINE"
        ) from error
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "unknown")
        hint = "check the token" if status in (401, 403) else "try again later"
        raise ExportError(f"the Hub answered {status} for {repo}", code="io", hint=hint) from error
    except Exception as error:
        # The HTTP library differs between versions of huggingface_hub; all of them name what failed.
        raise ExportError(
            f"{repo} could not be downloaded from {constants.ENDPOINT}: {type(error).__name__}: {error}".rstrip(": "),
            code="io",
            hint="check the network (HF_ENDPOINT names another Hub) and run this again: it goes on where it ended",
        ) from error


if __name__ == "__main__":
    sys.exit(main())
