"""Generates text with a bundle, in the engine that it is for.

python -m argosy.run BUNDLE --prompt TEXT [--system TEXT] [--variant NAME] [--adapter NAME] [--image FILE] [--audio FILE]
    [--max-new-tokens N] [--temperature T [--top-k K] [--top-p P] [--seed N]] [--raw] [--json]
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..errors import ExportError
from ..summary import Summary
from ..terminal import say, say_error
from .bundles import Bundle, open_bundle
from .given_media import wants_given_media, write_given_media
from .runners import BundleProcess, EngineMissing, Runner, RunError, find_runner

#: A prompt on standard input is text that people or scripts write; a larger one is a mistake.
_LARGEST_PROMPT = 16 << 20
#: Seeds that every engine takes.
_SEEDS = 1 << 31


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="argosy run", description=__doc__.split("\n", 1)[0])
    parser.add_argument("bundle", type=Path, help="a folder that argosy export onnx --for ENGINE wrote, or argosy export executorch")
    parser.add_argument("--variant", default="", help="of several in the bundle (default: what the engine opens by itself)")
    parser.add_argument("--adapter", default="", help="a LoRA adapter that the bundle has in a file of its own, by name")
    parser.add_argument("--prompt", help="what the text goes on from; - (default, where it is no terminal): standard input")
    parser.add_argument("--system", default="", help="what the conversation of a chat template begins with")
    parser.add_argument(
        "--image", action="append", default=[], type=Path, help="a file, for models that see; again for another"
    )
    parser.add_argument("--audio", action="append", default=[], type=Path, help="a file, for models that hear")
    parser.add_argument("--max-new-tokens", type=int, default=128, help="stop after so many (default: 128)")
    parser.add_argument("--temperature", type=float, default=0, help="draw tokens, 1: by the model's own odds (default: 0, always the best)")
    parser.add_argument("--top-k", type=int, help="with --temperature: only among so many best")
    parser.add_argument("--top-p", type=float, help="with --temperature: only among the fewest that are as likely together")
    parser.add_argument("--seed", type=int, help="with --temperature: the same seed draws the same text (default: any)")
    parser.add_argument("--raw", action="store_true", help="the prompt as it is, without the model's chat template")
    parser.add_argument("--json", action="store_true", help="the text and what is known of it, as one JSON object")
    options = parser.parse_args(arguments)
    if not options.prompt and not options.audio:
        if options.prompt == "" or sys.stdin is None or sys.stdin.isatty():
            parser.error("give --prompt TEXT, or --audio FILE")
        options.prompt = "-"
    if options.max_new_tokens < 1:
        parser.error("--max-new-tokens: at least 1")
    summary = Summary("run")
    try:
        run(options, summary)
    except (ExportError, RunError) as error:
        failure = _as_export_error(error)
        say_error(failure)
        if options.json:
            summary.print(1, failure)
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:  # who reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if options.json:
        summary.print()
    return 0


def _as_export_error(error: Exception) -> ExportError:
    if isinstance(error, ExportError):
        return error
    if isinstance(error, EngineMissing):
        return _failed("not-found", str(error))
    return _failed("engine-failed", str(error), "argosy lint says what engines do not like of a bundle")


def _failed(code: str, text: str, hint: str = "") -> ExportError:
    return ExportError(text, code=code, hint=hint)


def run(options: argparse.Namespace, summary: Summary) -> None:
    bundle = open_bundle(options.bundle, options.variant)
    for file in (*options.image, *options.audio):
        if not file.is_file():
            raise ExportError(f"there is no {file}", code="not-found", hint="name a file")
    prompt = read_prompt() if options.prompt == "-" else options.prompt or ""
    request = {
        "text": prompt,
        "chat": bundle.has_chat_template and not options.raw,
        "images": [str(file.absolute()) for file in options.image],
        "audios": [str(file.absolute()) for file in options.audio],
        "max_new_tokens": options.max_new_tokens,
        "adapter": _adapter_file(bundle, options.adapter),
        "stream": not options.json,
    }
    if options.system:
        if not request["chat"]:
            raise ExportError("--system is for chat templates, and this prompt has none", code="invalid-input",
                              hint="leave out --raw" if options.raw and bundle.has_chat_template else "write it into the prompt")  # fmt: skip
        request["system"] = options.system
    if (sampling := sampling_of(options, find_runner(bundle))) is not None:
        request["sampling"] = sampling
    with tempfile.TemporaryDirectory(prefix="argosy-run-") as folder, _opened(bundle) as process:
        if options.image and wants_given_media(bundle):
            inputs = write_given_media(
                bundle, prompt, request["chat"], options.image, Path(folder) / "inputs.npz", options.system
            )
            request["tensors"] = str(inputs)
        made = process.ask(request, _print_piece)
        if options.json:
            summary.fields |= _fields(process, made, sampling)
        else:
            print(flush=True)
            say(_figures(process, made, sampling))


def _opened(bundle: Bundle) -> BundleProcess:
    """Large ones take seconds, in which a terminal says what it waits for."""
    if not sys.stderr.isatty():
        return BundleProcess(bundle)
    print(f"Opening {bundle.folder}…"[: os.get_terminal_size(2).columns - 1], end="", file=sys.stderr, flush=True)
    try:
        return BundleProcess(bundle)
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def read_prompt() -> str:
    """All of standard input, without the line feed that ends it."""
    given = sys.stdin.buffer.read(_LARGEST_PROMPT + 1)
    if len(given) > _LARGEST_PROMPT:
        raise ExportError(f"standard input has more than {_LARGEST_PROMPT >> 20} MiB", code="invalid-input",
                          hint="a prompt is a text that the model can read at once")  # fmt: skip
    try:
        text = given.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ExportError(f"standard input is no text in UTF-8: {error.reason} at byte {error.start}", code="invalid-input",
                          hint="give text, or --image or --audio FILE") from error  # fmt: skip
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise ExportError("standard input has no prompt", code="invalid-input", hint="give --prompt TEXT, or write it to standard input")
    return text


def sampling_of(options: argparse.Namespace, runner: Runner) -> dict[str, Any] | None:
    """How tokens are drawn; None: the best is always taken."""
    flags = {"--top-k": options.top_k, "--top-p": options.top_p, "--seed": options.seed}
    if not 0 <= options.temperature < float("inf"):
        raise ExportError(f"--temperature {options.temperature} is not 0 or more", code="invalid-input", hint="usual are 0.2 to 1.2")
    if options.temperature == 0:
        given = [flag for flag, value in flags.items() if value is not None]
        if not given:
            return None
        raise ExportError(f"{given[0]} is about how tokens are drawn, and without --temperature the best is always taken",
                          code="invalid-input", hint="add --temperature 0.8, or leave it out")  # fmt: skip
    if options.top_k is not None and options.top_k < 1:
        raise ExportError(f"--top-k {options.top_k} is not 1 or more", code="invalid-input", hint="usual are 20 to 100")
    if options.top_p is not None and not 0 < options.top_p <= 1:
        raise ExportError(f"--top-p {options.top_p} is not above 0 and up to 1", code="invalid-input", hint="usual are 0.8 to 0.95")
    if options.seed is not None and not 0 <= options.seed < _SEEDS:
        raise ExportError(f"--seed {options.seed} is not from 0 to {_SEEDS - 1}", code="invalid-input", hint="any other number will do")
    for name in runner.draws_without:
        if getattr(options, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise ExportError(f"{runner.title} has no {flag}", code="unsupported-feature", hint="leave it out; --top-k limits the choice, too")
    seed = secrets.randbelow(_SEEDS) if options.seed is None else options.seed
    return {"temperature": options.temperature, "top_k": options.top_k or 0, "top_p": options.top_p or 1.0, "seed": seed}


def _adapter_file(bundle: Bundle, name: str) -> str:
    if not name or name in bundle.adapters:
        return bundle.adapters[name] if name else ""
    names = ", ".join(bundle.adapters)
    raise ExportError(f"{bundle.folder} has no adapter {name!r}", code="invalid-input",
                      hint=f"it has {names}" if names else "export it with --adapter-apart NAME=DIR")  # fmt: skip


def _print_piece(text: str) -> None:
    print(text, end="", flush=True)


def _count(made: dict[str, Any]) -> int:
    return made.get("new_tokens", len(made["tokens"][0]))


def _figures(process: BundleProcess, made: dict[str, Any], sampling: dict[str, Any] | None) -> str:
    count, seconds = _count(made), made["seconds"]
    drawn = f", seed {sampling['seed']}" if sampling else ""
    return (f"{process.runner.title} {process.opened['version']}: opened in {process.opened['seconds']:.2f} s, prompt of "
            f"{made['prompt_tokens']} tokens, {count} new in {seconds:.2f} s ({count / max(seconds, 1e-9):.1f} tokens/s){drawn}")  # fmt: skip


def _fields(process: BundleProcess, made: dict[str, Any], sampling: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "text": made["text"],
        "engine": process.runner.name,
        "engine_version": process.opened["version"],
        "prompt_tokens": made["prompt_tokens"],
        "new_tokens": _count(made),
        "opening_seconds": process.opened["seconds"],
        "generation_seconds": made["seconds"],
        **({"seed": sampling["seed"]} if sampling else {}),
    }


if __name__ == "__main__":
    sys.exit(main())
