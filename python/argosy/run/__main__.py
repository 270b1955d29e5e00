"""Generates text with a bundle, in the engine that it is for.

python -m argosy.run BUNDLE --prompt TEXT [--variant NAME] [--adapter NAME] [--image FILE] [--audio FILE] [--max-new-tokens N] [--raw]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..errors import ExportError
from .bundles import Bundle, open_bundle
from .given_media import wants_given_media, write_given_media
from .runners import BundleProcess, EngineMissing, RunError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="argosy run", description=__doc__.split("\n", 1)[0])
    parser.add_argument("bundle", type=Path, help="a folder that argosy export onnx --for ENGINE wrote, or argosy export executorch")
    parser.add_argument("--variant", default="", help="of several in the bundle (default: what the engine opens by itself)")
    parser.add_argument("--adapter", default="", help="a LoRA adapter that the bundle has in a file of its own, by name")
    parser.add_argument("--prompt", default="", help="what the text goes on from")
    parser.add_argument(
        "--image", action="append", default=[], type=Path, help="a file, for models that see; again for another"
    )
    parser.add_argument("--audio", action="append", default=[], type=Path, help="a file, for models that hear")
    parser.add_argument("--max-new-tokens", type=int, default=128, help="stop after so many (default: 128)")
    parser.add_argument("--raw", action="store_true", help="the prompt as it is, without the model's chat template")
    options = parser.parse_args(arguments)
    if not options.prompt and not options.audio:
        parser.error("give --prompt TEXT, or --audio FILE")
    if options.max_new_tokens < 1:
        parser.error("--max-new-tokens: at least 1")
    try:
        run(options)
    except ExportError as error:
        return _failed(error.code, error.message, error.hint)
    except EngineMissing as error:
        return _failed("not-found", str(error))
    except RunError as error:
        return _failed("engine-failed", str(error), "argosy lint says what engines do not like of a bundle")
    return 0


def run(options: argparse.Namespace) -> None:
    bundle = open_bundle(options.bundle, options.variant)
    for file in (*options.image, *options.audio):
        if not file.is_file():
            raise ExportError(f"there is no {file}", code="not-found", hint="name a file")
    request = {
        "text": options.prompt,
        "chat": bundle.has_chat_template and not options.raw,
        "images": [str(file.absolute()) for file in options.image],
        "audios": [str(file.absolute()) for file in options.audio],
        "max_new_tokens": options.max_new_tokens,
        "adapter": _adapter_file(bundle, options.adapter),
        "stream": True,
    }
    with tempfile.TemporaryDirectory(prefix="argosy-run-") as folder, BundleProcess(bundle) as process:
        if options.image and wants_given_media(bundle):
            inputs = write_given_media(
                bundle, options.prompt, request["chat"], options.image, Path(folder) / "inputs.npz"
            )
            request["tensors"] = str(inputs)
        made = process.ask(request, _print_piece)
        print(flush=True)
        print(_figures(process, made), file=sys.stderr)


def _adapter_file(bundle: Bundle, name: str) -> str:
    if not name or name in bundle.adapters:
        return bundle.adapters[name] if name else ""
    names = ", ".join(bundle.adapters)
    raise ExportError(f"{bundle.folder} has no adapter {name!r}", code="invalid-input",
                      hint=f"it has {names}" if names else "export it with --adapter-apart NAME=DIR")  # fmt: skip


def _print_piece(text: str) -> None:
    print(text, end="", flush=True)


def _figures(process: BundleProcess, made: dict[str, Any]) -> str:
    count, seconds = made.get("new_tokens", len(made["tokens"][0])), made["seconds"]
    return (f"{process.runner.title} {process.opened['version']}: opened in {process.opened['seconds']:.2f} s, prompt of "
            f"{made['prompt_tokens']} tokens, {count} new in {seconds:.2f} s ({count / max(seconds, 1e-9):.1f} tokens/s)")  # fmt: skip


def _failed(code: str, text: str, hint: str | None = None) -> int:
    print(f"error[{code}]: {text}", file=sys.stderr)
    if hint:
        print(f"  hint: {hint}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
