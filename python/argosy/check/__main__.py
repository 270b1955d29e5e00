"""Compares an exported program with the eager model.

    python -m argosy.check EXPORT --against DIR     what was exported, with the checkpoint that it was exported from
    python -m argosy.check BUNDLE --against DIR --tokens 32     greedy tokens, in the engine that the bundle is for
    python -m argosy.check --twin DIR               whether models of this configuration are exported right, on a twin
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from ..capture.start import import_libraries
from ..errors import ExportError
from ..summary import Summary
from ..terminal import hush_libraries, say, say_error
from ..tracebacks import explain_failure

WRONG = 3


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m argosy.check", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("export", nargs="?", type=Path, help="a file or folder that argosy export wrote")
    parser.add_argument("--against", type=Path, help="folder of the model that was exported")
    parser.add_argument("--calls", default="edge,observed,greedy,text", help="which ones (default: all four)")
    parser.add_argument("--text", type=Path, help="a file of text that the export and the model read, for figures")
    parser.add_argument("--audio", type=Path, help="a WAV file that both hear, likewise")
    parser.add_argument("--tokens", type=int, default=0, metavar="N",
                        help="N greedy tokens of a bundle in its own engine (default for models that generate: 32)")  # fmt: skip
    parser.add_argument("--variant", default="", help="of several in a bundle (default: what its engine opens by itself)")
    parser.add_argument("--adapter-apart", action="append", default=[], metavar="NAME=DIR",
                        help="the folder of a LoRA adapter that the bundle has in a file of its own; may be repeated")  # fmt: skip
    parser.add_argument("--engine-python", help="with --tokens: the Python of an engine that has its own environment")
    parser.add_argument("--twin", type=Path, help="folder of a model; only config.json is read")
    parser.add_argument("--engine", default=None, help="pt2; by default what the file's name says")
    parser.add_argument("--for", dest="bundle_engine", default="", help="also run the twin in this engine, as a bundle for it")
    parser.add_argument("--program", default="argosy", help="the argosy program that exports the twin")
    parser.add_argument("--task", help="of the twin, as export was given it")
    parser.add_argument("--shape", help="likewise")
    parser.add_argument("--prefill", action="store_true", help="likewise")
    parser.add_argument("--inputs", action="append", type=Path, default=[], metavar="FILE",
                        help="what forward is called with, as capture was given it; may be repeated")  # fmt: skip
    parser.add_argument("--dtype", default="auto", help="likewise; auto: the configuration's")
    parser.add_argument("--option", action="append", default=[], help="likewise: an argument of export, --option=--opset=18")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    parser.add_argument("--json", action="store_true", help="the table as one JSON object")
    parser.add_argument("--progress", choices=("text", "json", "off"), default="text")
    parser.add_argument("-o", "--output", type=Path, help="also write the JSON object to this file")
    options = parser.parse_args(arguments)
    if (options.twin is None) == (options.export is None) or (options.export is None) != (options.against is None):
        parser.error("give an export and --against, or --twin")
    if options.tokens < 0 or (options.tokens and options.export is None):
        parser.error("--tokens: at least 1, of a bundle")
    unknown = set(options.calls.split(",")) - {"edge", "observed", "greedy", "text"}
    if unknown:
        parser.error(f"--calls: {', '.join(sorted(unknown))} is none of edge, observed, greedy, text")
    summary = Summary("check")
    try:
        return run(options, summary)
    except ExportError as error:
        say_error(error)
        if options.json:
            summary.print(1, error)
        return 1
    except Exception as error:
        if options.progress == "json" and not isinstance(error, ModuleNotFoundError):
            raise  # whoever started this keeps all that it says
        if options.json:
            code = "not-found" if isinstance(error, ModuleNotFoundError) else "internal"
            summary.print(1, ExportError(f"the check failed: {error}", code=code))
        return explain_failure(error, "the check failed", "the check needs torch and transformers", "torch")


def run(options: argparse.Namespace, summary: Summary) -> int:
    def report(text: str) -> None:
        if options.progress == "json":
            print(json.dumps({"stage": text}), file=sys.stderr, flush=True)
        elif options.progress == "text":
            say(text)

    hush_libraries()
    report("loading torch and transformers")
    if options.twin is not None:  # no checkpoint is read, of whatever library
        import_libraries()
    from transformers.utils import logging

    from ..extensions import load_extensions
    from ..run.bundles import find_variant, is_for_an_engine
    from .adapters import read_adapters
    from .full import check_bundle, check_export
    from .rows import table_text
    from .twin import TwinRequest, check_twin

    logging.disable_progress_bar()
    load_extensions()
    if options.twin is not None:
        request = TwinRequest(options.twin, options.engine or "pt2", options.task, options.shape, options.prefill,
                              options.dtype, options.trust_remote_code, tuple(options.option), options.program,
                              options.bundle_engine, read_adapters(options.adapter_apart), tuple(options.inputs))  # fmt: skip
        checked = check_twin(request, report)
    elif options.tokens or is_for_an_engine(find_variant(options.export, options.variant)[0]):
        checked = check_bundle(options.export, options.against, count=options.tokens, text=options.text, audio=options.audio,
                               variant=options.variant, adapters=read_adapters(options.adapter_apart), trust_remote_code=options.trust_remote_code, engine_python=options.engine_python,
                               report=report, inputs=options.inputs)  # fmt: skip
    else:
        checked = check_export(find_variant(options.export, options.variant)[0], options.against, engine=options.engine,
                               calls=tuple(options.calls.split(",")), text=options.text, audio=options.audio,
                               trust_remote_code=options.trust_remote_code, report=report, inputs=options.inputs)  # fmt: skip
    exit_code = 0 if checked.ok or checked.unchecked else WRONG if any(row.ok is False for row in checked.rows) else 1
    if options.output is not None:
        options.output.write_text(json.dumps(checked.document(), indent=1) + "\n")
    if options.json:
        summary.fields |= checked.document()
        summary.print(exit_code)
    else:
        print(table_text(checked.rows), end="")
        print(f"{checked.model_class} in {checked.engine}: {checked.summary()} (tolerance {checked.tolerance:g})")
    return exit_code


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # torch may crash while it frees fake tensors at exit
