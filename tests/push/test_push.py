"""`argosy push`, against a server that speaks the Hub's protocol."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lint_bundles import transformersjs
from push_server import TOKEN, PushHub, push_server

pytest.importorskip("huggingface_hub", reason="pushes are its work")

ROOT = Path(__file__).resolve().parents[2]
ARGOSY = Path(os.environ.get("ARGOSY_BIN", ROOT / "build/release/apps/cli/argosy"))
CARD = "---\nlicense: mit\ntags:\n- argosy\n---\n\n# A bundle\n"
#: Large files, and their sizes.
DATA = {"onnx/model.onnx_data": 2_000_000, "onnx/model.onnx_data_1": 3_000_000}


class User:
    """Somebody with a bundle, a token and a Hub."""

    def __init__(self, folder: Path, hub: PushHub) -> None:
        self.folder, self.hub, self.bundle = folder, hub, folder / "bundle"
        write_bundle(self.bundle)

    def environment(self, **changes: str) -> dict[str, str]:
        own = {"ARGOSY_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "python"), "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": TOKEN}
        return {**os.environ, **self.hub.environment(self.folder / "home"), **own, **changes}

    def start(self, *arguments: str, folder: Path | None = None, name: str = "org/name", **changes: str) -> subprocess.Popen[str]:
        command = [str(ARGOSY), "push", str(folder or self.bundle), name, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment(**changes))

    def push(self, *arguments: str, code: int = 0, **settings) -> str:
        """What it says. What it asked the Hub is in the log alone."""
        self.hub.log.clear()
        process = self.start(*arguments, **settings)
        out, error = process.communicate(timeout=120)
        assert process.returncode == code, f"exit code {process.returncode}\n{out}\n{error}"
        assert "Traceback" not in error and TOKEN not in out + error
        return out + error

    def fails(self, *arguments: str, **settings) -> str:
        """The message, which says what to do."""
        said = self.push(*arguments, code=1, **settings)
        assert "error[" in said and "  hint: " in said
        return said

    def on_the_hub(self, revision: str = "main", name: str = "org/name") -> dict[str, bytes]:
        repository = self.hub.repositories[name]
        return {key: value for key, value in repository.commits[repository.references[revision]].items() if key != ".gitattributes"}


def write_bundle(folder: Path, seed: int = 0) -> None:
    transformersjs(folder)
    for number, (name, size) in enumerate(DATA.items()):
        with (folder / name).open("ab") as file:
            file.write(bytes([seed, number]) * (size // 2))
            file.truncate(size)
    (folder / "README.md").write_text(CARD)
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    manifest = {"format": "argosy-onnx", "argosy": "1.2", "engine": "transformersjs", "source": {"name": "own/model"}, "files": files}
    (folder / "bundle.json").write_text(json.dumps(manifest))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    with push_server() as hub:
        yield User(tmp_path, hub)


def test_a_push_is_one_commit_and_the_next_does_nothing(user: User) -> None:
    said = user.push()
    assert f"{user.hub.url}/org/name: commit " in said and "making the repository org/name" in said
    assert user.on_the_hub() == contents(user.bundle)
    (made,) = user.hub.made
    assert made.summary == "own/model for transformersjs, exported by argosy 1.2" and not made.deleted
    assert len(user.hub.asked("PUT")) == 3 and not user.hub.repositories["org/name"].private
    said = user.push()
    assert "has this bundle already" in said and "nothing was sent" in said
    assert len(user.hub.made) == 1 and not user.hub.asked("POST") and not user.hub.asked("PUT")


def test_only_what_changed_is_sent(user: User) -> None:
    user.push()
    (user.bundle / "README.md").write_text(CARD + "\nMore words.\n")
    said = user.push()
    assert "1 of 9 files are new or differ" in said
    assert user.hub.made[-1].paths == ["README.md"] and not user.hub.asked("PUT")
    # The same size and other content is a change.
    data = user.bundle / "onnx/model.onnx_data"
    data.write_bytes(data.read_bytes()[:-1] + b"!")
    user.push()
    assert user.hub.made[-1].paths == ["onnx/model.onnx_data"] and len(user.hub.asked("PUT")) == 1
    assert user.on_the_hub() == contents(user.bundle)


def test_a_push_that_is_killed_goes_on_where_it_ended(user: User) -> None:
    user.hub.stuck_size = DATA["onnx/model.onnx_data_1"]  # the last to be sent
    process = user.start()
    assert user.hub.stuck.wait(60)
    process.send_signal(signal.SIGKILL)
    end_children(user)
    process.communicate(timeout=60)
    assert not user.hub.made and len(user.hub.objects) == 2
    user.push()
    assert len(user.hub.asked("PUT")) == 1, "the file that was cut off, and no other"
    assert len(user.hub.made) == 1 and user.on_the_hub() == contents(user.bundle)


def end_children(user: User) -> None:
    """Ends the Python that the killed program had started, which has the bundle's path in its command line."""
    for place in Path("/proc").iterdir():
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            continue
        if b"argosy.push" in words and str(user.bundle).encode() in words:
            os.kill(int(place.name), signal.SIGKILL)


def test_a_failed_upload_is_told_and_the_next_push_sends_the_rest(user: User) -> None:
    user.hub.failing["/upload/"] = [(403, "expired")]
    said = user.fails()
    assert "403" in said and not user.hub.made
    user.push()
    assert len(user.hub.made) == 1 and user.on_the_hub() == contents(user.bundle)


def test_a_branch_and_a_private_repository_are_made(user: User) -> None:
    said = user.push("--private", "--revision", "dtypes/q4")
    assert "making the private repository" in said and "making the branch dtypes/q4" in said
    assert user.hub.repositories["org/name"].private
    assert user.on_the_hub("dtypes/q4") == contents(user.bundle) and user.on_the_hub() == {}
    assert "has this bundle already" in user.push("--private", "--revision", "dtypes/q4")
    assert user.hub.made[0].branch == "dtypes/q4"


def test_nothing_private_goes_to_a_public_repository(user: User) -> None:
    user.hub.add("org/name", {"config.json": b"{}"})
    assert "org/name is public" in user.fails("--private")
    assert not user.hub.asked("POST") and not user.hub.made


def test_files_of_an_earlier_export_go_and_others_stay(user: User) -> None:
    old = {"format": "argosy-onnx", "files": ["genai_config.json", "../outside", "gone.bin", "README.md"]}
    there = {"genai_config.json": b"{}", "picture.png": b"png", "bundle.json": json.dumps(old).encode(), "README.md": b""}
    user.hub.add("org/name", there)
    said = user.push()
    assert "1 file of an earlier export removed" in said
    (made,) = user.hub.made
    assert made.deleted == ["genai_config.json"]
    assert user.on_the_hub() == {**contents(user.bundle), "picture.png": b"png"}


def test_a_dry_run_asks_nothing(user: User) -> None:
    # Neither a token nor huggingface_hub's variables are needed.
    said = user.push("--dry-run", "--private", "--revision", "q4", HF_TOKEN="", HF_HUB_OFFLINE="1")
    assert user.hub.log == []
    assert "to org/name, branch q4: 9 files" in said and "3 MB  onnx/model.onnx_data_1" in said
    assert "  license: mit\n" in said and "# A bundle" not in said
    assert "make org/name, private, if there is none, and its branch q4" in said and "no server was asked" in said


def test_a_card_cannot_write_to_the_terminal(user: User) -> None:
    (user.bundle / "README.md").write_text("---\nlicense: \x1b[2Jmit\n---\n")
    assert "\x1b" not in user.push("--dry-run")


@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_a_bundle_with_errors_is_refused(user: User, dry: list[str]) -> None:
    (user.bundle / "onnx/model.onnx_data").unlink()
    said = user.fails(*dry)
    assert "argosy lint finds" in said and "model.onnx_data" in said
    assert user.hub.log == []


def test_what_no_export_wrote_is_pushed_only_if_asked(user: User) -> None:
    (user.bundle / ".env").write_text("secret")
    said = user.fails()
    assert "files that no export wrote: .env" in said and "--all-files" in said
    (user.bundle / ".env").unlink()
    other = user.folder / "other"
    (other / ".git").mkdir(parents=True)
    (other / ".git/config").write_text("[user]")
    (other / "model.bin").write_bytes(b"1234")
    assert "no export wrote" in user.fails(folder=other)
    assert user.hub.log == []
    user.push("--all-files", folder=other)
    assert user.on_the_hub() == {"model.bin": b"1234"}
    assert user.hub.made[0].summary == "Upload by argosy"


def test_links_out_of_the_folder_are_refused(user: User) -> None:
    (user.folder / "secret").write_text("of this machine")
    (user.folder / "secrets").mkdir()
    (user.bundle / "LICENSE").symlink_to("../secret")
    assert "LICENSE is no file of the folder" in user.fails("--all-files")
    (user.bundle / "LICENSE").unlink()
    (user.bundle / "more").symlink_to("../secrets")
    assert "more is no file of the folder" in user.fails("--all-files")
    assert user.hub.log == []


@pytest.mark.parametrize("name", ["name", "a/b/c", "../up", "org/na me", "org/", "-org/name", "org/a--b", "org/x.git"])
def test_rejects_names(user: User, name: str) -> None:
    process = user.start("--dry-run", name=name) if not name.startswith("-") else user.start("--dry-run", "--", name="--all-files")
    out, error = process.communicate(timeout=60)
    assert process.returncode in (1, 2) and "Traceback" not in error and not out
    assert user.hub.log == []


@pytest.mark.parametrize("revision", ["0123456789" * 4, "a b", "../x", "x/"])
def test_rejects_branches(user: User, revision: str) -> None:
    assert "--revision is " in user.fails("--revision", revision)
    assert user.hub.log == []


def test_tokens_come_from_their_places_alone(user: User) -> None:
    assert "there is no token" in user.fails(HF_TOKEN="")
    assert user.hub.log == []
    home = user.folder / "home"
    home.mkdir()
    (home / "token").write_text(TOKEN)
    user.push(HF_TOKEN="")
    assert user.on_the_hub() == contents(user.bundle)


def test_a_token_that_the_hub_does_not_take(user: User) -> None:
    said = user.fails(HF_TOKEN="hf_wrong")
    assert "does not take the token for org/name" in said and "hf auth login" in said


def test_an_organisation_of_others(user: User) -> None:
    said = user.fails(name="others/name")
    assert "may not write to others/name" in said and "(403: You don't have the rights" in said


@pytest.mark.parametrize(
    ("place", "status", "wanted"),
    [
        ("/api/repos/create", 404, "finds nothing to write to"),
        ("/preupload/", 404, "check that org exists"),
        ("/commit/", 409, "changed by someone else"),
        ("/commit/", 400, "refuses what was asked"),
        ("/commit/", 503, "answered with an error"),
        ("/objects/batch", 401, "hf auth login"),
    ],
)
def test_answers_that_are_errors_are_explained(user: User, place: str, status: int, wanted: str) -> None:
    user.hub.failing[place] = [(status, "says\x1b[2J the server")]
    said = user.fails()
    assert wanted in said and str(status) in said and user.hub.url in said and "\x1b" not in said
    assert not user.hub.made


def test_a_commit_of_others_in_between_is_a_conflict(user: User) -> None:
    user.hub.before_commit.append(lambda: user.hub.add("org/name", {"theirs": b"1"}))
    assert "changed by someone else" in user.fails()
    assert user.on_the_hub() == {"theirs": b"1"}
    user.push()
    assert not user.hub.asked("PUT") and user.on_the_hub() == {**contents(user.bundle), "theirs": b"1"}


def test_no_network(user: User) -> None:
    said = user.fails(HF_ENDPOINT="http://127.0.0.1:9")
    assert "broke off" in said and "http://127.0.0.1:9" in said and "run this again" in said
    assert "offline" in user.fails(HF_HUB_OFFLINE="1")


def test_a_card_that_the_hub_cannot_read(user: User) -> None:
    (user.bundle / "README.md").write_text("---\nlicense: [\n---\n")
    assert "bundle/README.md cannot be read" in user.fails()
    assert user.hub.log == []
    (user.bundle / "README.md").write_text(CARD)
    user.hub.failing["/api/validate-yaml"] = [(400, "odd licence")]
    said = user.fails()
    assert "does not take the card of org/name" in said and "correct README.md" in said
    assert not user.hub.made
