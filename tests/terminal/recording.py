"""Runs commands in tmux, in a terminal of 80 columns and 24 lines, and says what is on the screen afterwards."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
GOLDEN = REPOSITORY / "tests/golden/terminal"
MODEL = REPOSITORY / "tests/fixtures/trained-decoder"
WIDTH, HEIGHT = 80, 24
#: Seconds that a command may take.
_LONGEST = 600

#: What users type, by the name of the golden file. Later sessions find what earlier ones made.
SESSIONS = {
    "first-export": ["argosy export onnx --model model --for genai out", 'argosy run out --prompt "def read(self" --max-new-tokens 16'],
    "second-export": ["argosy export onnx --model model --for genai again", "argosy cache ls"],
    "mistakes": [
        "argosy exprot onnx --model model",
        "argosy export onnx --modle model",
        "argosy export onnx --model modle out",
        "argosy export onnx --model model model",
        "argosy export onnx --model model --for tensorrt out",
    ],
    "download": ["argosy export onnx --model org/name --for genai downloaded"],
}


@dataclass
class Shell:
    """A shell in tmux, in a folder that has a model under that name. To be used in a with block."""

    program: Path
    #: the interpreter that captures and checks
    python: str
    #: more of its environment, such as where the Hub is
    variables: dict[str, str] = field(default_factory=dict)
    #: the most seconds in which a command changed nothing on the screen
    longest_silence: float = 0

    def __enter__(self) -> Shell:
        self._place = Path(tempfile.mkdtemp(prefix="argosy-term-"))
        folder, programs = self._place / "work", self._place / "bin"
        shutil.copytree(MODEL, folder / "model")
        programs.mkdir()
        (programs / "argosy").symlink_to(self.program)
        # Paths are relative: those of this machine are on no screen.
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(self._place), "TMUX_TMPDIR": str(self._place), "PS1": "$ ",
            "LANG": "C.UTF-8", "PYTHONPATH": str(REPOSITORY / "python"), "ARGOSY_PYTHON": self.python, "ARGOSY_CACHE": "cache",
            "OMP_NUM_THREADS": "1", "PROMPT_COMMAND": "tmux wait-for -S prompt", "HISTFILE": "/dev/null", **self.variables,
        }  # fmt: skip
        self._environment = {**os.environ, "TMUX_TMPDIR": str(self._place), "LANG": "C.UTF-8"}
        self._environment.pop("TMUX", None)
        shell = ["env", *(f"{name}={value}" for name, value in environment.items()), "bash", "--norc", "--noprofile"]
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT), "-c", str(folder), *shell)
        self._tmux("wait-for", "prompt")
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["tmux", "kill-server"], env=self._environment, check=False)
        shutil.rmtree(self._place, ignore_errors=True)

    def record(self, commands: list[str]) -> str:
        """The screen after these commands, with what has scrolled away."""
        self._tmux("send-keys", "clear", "Enter")
        self._tmux("wait-for", "prompt")
        self._tmux("clear-history")
        for command in commands:
            self._tmux("send-keys", "-l", command)
            self._tmux("send-keys", "Enter")
            self._wait(command)
        lines = self.screen().rstrip("\n").split("\n")
        assert lines[-1].strip() == "$", lines[-1]
        return "\n".join(line.rstrip() for line in lines[:-1]) + "\n"

    def screen(self, *, joined: bool = False) -> str:
        """All of it; `joined`: lines that the terminal broke are one."""
        return self._tmux("capture-pane", "-p", "-S", "-", *(["-J"] if joined else []))

    def _wait(self, command: str) -> None:
        waiting = subprocess.Popen(["tmux", "wait-for", "prompt"], env=self._environment)
        start = changed = time.monotonic()
        shown = ""
        while waiting.poll() is None:
            time.sleep(0.1)
            now = time.monotonic()
            if now - start > _LONGEST:
                waiting.kill()
                raise TimeoutError(f"{command}\n{self.screen()}")
            if (seen := self.screen()) != shown:
                shown, changed = seen, now
            self.longest_silence = max(self.longest_silence, now - changed)

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(["tmux", *arguments], env=self._environment, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"tmux {' '.join(arguments[:3])}: {done.stderr}")
        return done.stdout


def normalised(text: str) -> str:
    """Without what differs from run to run: times, speeds, versions of packages and hashes; and where lines are broken, which
    depends on these."""
    for pattern, instead in (
        (r"\n +", " "),
        (r" \((first time|anew)(, (about|the last one took) \d+ (s|min))?\)", r" (\1)"),
        (r" \((about|the last one took) \d+ (s|min)\)", ""),
        (r"\b\d+(\.\d+)? s\b", "N s"),
        (r"\d+\.\d tokens/s", "N tokens/s"),
        (r"\b[0-9a-f]{40}\b", "COMMIT"),
        (r"\b[0-9a-f]{12}\b", "KEY"),
        (r"just now|\d+ minutes?", "AGE"),
        (r"largest difference [0-9.e+-]+", "largest difference N"),
        (r"\b\d+(\.\d+)? [kM]B\b", "N B"),
        (r"GenAI \d+\.\d+(\.\d+)?", "GenAI N"),
        (r" +", " "),  # of columns
    ):
        text = re.sub(pattern, instead, text)
    return text


def golden(name: str) -> Path:
    return GOLDEN / f"{name}.txt"


def record_all(program: Path, python: str = sys.executable) -> tuple[dict[str, str], list[str], float]:
    """The text of each session, lines that are wider than the terminal, and the longest silence in seconds."""
    sys.path.append(str(REPOSITORY / "tests/e2e"))
    from hub_server import hub_server

    with hub_server() as hub:
        hub.add("org/name", MODEL)
        variables = {"HF_ENDPOINT": hub.url, "HF_HOME": "hub", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"}
        wide, texts = [], {}
        with Shell(program, python, variables) as shell:
            for name, commands in SESSIONS.items():
                texts[name] = shell.record(commands)
                wide += [line for line in shell.screen(joined=True).splitlines() if len(line.rstrip()) > WIDTH]
            return texts, wide, shell.longest_silence
