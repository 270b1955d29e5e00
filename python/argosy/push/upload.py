"""Brings a folder's files to a branch of the Hub, in one commit."""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ExportError
from .contents import CARD, MANIFEST, Contents, File, manifest_files, printable, size_text
from .failures import LOGIN, explained

#: Files up to this size are asked about together, larger ones one by one: each that arrived stays where it is.
_SMALL_BYTES = 1 << 20
#: Manifests are small; a larger file is none.
_LARGEST_MANIFEST = 64 << 20

Report = Callable[[str], None]


@dataclass(frozen=True)
class Pushed:
    url: str  # of the branch
    commit: str  # that it now is at
    changed: tuple[File, ...]  # none: the branch had all of it
    removed: tuple[str, ...]  # files of an earlier export that this one lacks


def push(
    contents: Contents,
    repository: str,
    *,
    revision: str = "main",
    private: bool = False,
    report: Report = lambda text: None,
) -> Pushed:
    """Makes the branch hold these files; those that it has already are not sent. `ExportError` for all that can go wrong.

    Repository and branch are made if there are none. The one commit comes last: what breaks off before it leaves the branch as
    it was, and large files that arrived are not sent again by the next push. Files that an earlier export brought, by the
    branch's own manifest, and that this one lacks are removed in the same commit; all others stay.
    """
    try:
        from huggingface_hub import HfApi, constants, get_token
    except ImportError as error:
        raise ExportError("a push needs huggingface_hub", code="not-found", hint="pip install huggingface_hub") from error
    if get_token() is None:
        raise ExportError(f"there is no token for {constants.ENDPOINT}", code="not-found", hint=LOGIN)
    _check_card(contents)
    with explained(repository, revision):
        api = HfApi(library_name="argosy")
        report(f"asking {constants.ENDPOINT} for {repository}, branch {revision}")
        branch = _Branch(api, repository, revision, private, report)
        url = f"{constants.ENDPOINT}/{repository}" + ("" if revision == "main" else f"/tree/{revision}")
        changed = [file for file in contents.files if not _is_there(file, branch.files.get(file.name))]
        removed = _superseded(contents, branch) if any(file.name == MANIFEST for file in changed) else []
        if not changed and not removed:
            return Pushed(url, branch.commit, (), ())
        commit = _commit(contents, branch, changed, removed, report)
    return Pushed(url, commit, tuple(changed), tuple(removed))


def _check_card(contents: Contents) -> None:
    """The Hub would refuse it too, but only when everything else is sent."""
    from huggingface_hub import metadata_load

    file = next((file for file in contents.files if file.name == CARD), None)
    if file is None:
        return
    try:
        metadata_load(file.path)
    except Exception as error:  # of the YAML library, or no UTF-8
        raise ExportError(
            f"the metadata of {file.path} cannot be read: {printable(str(error))}",
            code="invalid-input",
            hint="correct what is between its first two --- lines",
        ) from error


class _Branch:
    """A branch as it is when a push begins."""

    def __init__(self, api: Any, repository: str, revision: str, private: bool, report: Report) -> None:
        from huggingface_hub import errors

        self.api, self.repository, self.revision = api, repository, revision
        try:
            info = self._info(None)
        except errors.GatedRepoError:
            raise
        except errors.RepositoryNotFoundError:
            report(f"making the {'private ' if private else ''}repository {repository}")
            api.create_repo(repository, private=private or None, exist_ok=True)
            info = self._info(None)
        if private and not info.private:
            raise ExportError(
                f"{repository} is public, and --private is for repositories that are made",
                code="invalid-input",
                hint="make it private in its settings first, choose another name, or leave out --private",
            )
        if revision != "main":
            try:
                info = self._info(revision)
            except errors.RevisionNotFoundError:
                report(f"making the branch {revision}")
                api.create_branch(repository, branch=revision, exist_ok=True)
                info = self._info(revision)
        self.commit = str(info.sha)
        self.files = {file.rfilename: file for file in info.siblings or ()}

    def _info(self, revision: str | None) -> Any:
        return self.api.model_info(self.repository, revision=revision, files_metadata=True)

    def manifest(self) -> dict[str, Any]:
        """That of the export that the branch holds; empty if there is none."""
        file = self.files.get(MANIFEST)
        if file is None or (file.size or 0) > _LARGEST_MANIFEST:
            return {}
        with tempfile.TemporaryDirectory(prefix="argosy-push-") as place:
            path = self.api.hf_hub_download(self.repository, MANIFEST, revision=self.commit, cache_dir=place)
            try:
                found = json.loads(Path(path).read_text(encoding="utf-8"))
            except ValueError:
                return {}
        return found if isinstance(found, dict) else {}


def _is_there(file: File, there: Any) -> bool:
    """Whether the branch has a file of this content."""
    if there is None or there.size != file.size:
        return False
    large = there.lfs
    if large is not None:
        wanted = large["sha256"] if isinstance(large, dict) else large.sha256
        return _hash(file, hashlib.sha256()) == wanted
    return there.blob_id is not None and _hash(file, hashlib.sha1(b"blob %d\0" % file.size)) == there.blob_id


def _hash(file: File, start: Any) -> str:
    with file.path.open("rb") as content:
        return hashlib.file_digest(content, lambda: start).hexdigest()


def _superseded(contents: Contents, branch: _Branch) -> list[str]:
    if not contents.manifest:
        return []
    kept = {file.name for file in contents.files}
    return sorted(name for name in set(manifest_files(branch.manifest())) - kept if name in branch.files)


def _commit(contents: Contents, branch: _Branch, changed: list[File], removed: list[str], report: Report) -> str:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    adds = [(file, CommitOperationAdd(path_in_repo=file.name, path_or_fileobj=str(file.path))) for file in changed]
    total = size_text(sum(file.size for file in changed))
    report(f"{len(changed)} of {len(contents.files)} files are new or differ, {total}")
    large = sorted((pair for pair in adds if pair[0].size > _SMALL_BYTES), key=lambda pair: pair[0].size)
    groups = [[pair for pair in adds if pair[0].size <= _SMALL_BYTES], *([pair] for pair in large)]
    for group in filter(None, groups):
        if group[0][0].size > _SMALL_BYTES:
            report(f"sending {printable(group[0][0].name, 200)}, {size_text(group[0][0].size)}, unless the Hub has it")
        # An empty list of names to ignore: a .gitignore of the repository leaves out nothing.
        branch.api.preupload_lfs_files(
            branch.repository,
            additions=[add for _, add in group],
            revision=branch.revision,
            free_memory=False,
            gitignore_content="",
        )
    report("committing")
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        made = branch.api.create_commit(
            branch.repository,
            operations=[*(add for _, add in adds), *(CommitOperationDelete(name) for name in removed)],
            commit_message=contents.title,
            revision=branch.revision,
            parent_commit=branch.commit,
        )
    for remark in remarks:
        report(printable(f"the Hub says: {remark.message}"))
    return str(made.oid)
