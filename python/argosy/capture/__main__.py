"""``python -m argosy.capture --model DIR -o FILE.capture``: the step that the command-line tool starts when its cache has no
capture of a model."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from ..errors import ExportError
from ..terminal import hush_libraries
from .start import import_libraries

DTYPES = ("float32", "float16", "bfloat16")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m argosy.capture", description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model; only config.json is read")
    parser.add_argument("--task", help="such as text-generation; by default what the model's class is for")
    parser.add_argument("--shape", help="narrows dims: batch=1,sequence=1..2048")
    parser.add_argument("--dtype", choices=("auto", *DTYPES), default="auto", help="of the weights; auto: the configuration's")
    parser.add_argument("--prefill", action="store_true", help="also a graph for prompts without a past")
    parser.add_argument("--attention", choices=("split", "whole"), default="split", help="whole: one op of its own")
    parser.add_argument("--trace", choices=("stamped", "whole"), default="stamped",
                        help="stamped: trace few layers and copy them where the rest is alike; whole: trace all")  # fmt: skip
    parser.add_argument("--inputs", action="append", type=Path, default=[], metavar="FILE",
                        help="what forward is called with, .safetensors or .npz; again for other sizes")  # fmt: skip
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    parser.add_argument("--progress", choices=("text", "json", "off"), default="text")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        run(options)
    except ExportError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return 1
    return 0


def run(options: argparse.Namespace) -> None:
    def report(text: str, **figures: object) -> None:
        if options.progress == "json":
            print(json.dumps({"stage": text, **figures}), file=sys.stderr, flush=True)
        elif options.progress == "text":
            print(text, file=sys.stderr, flush=True)

    hush_libraries()
    report("loading torch and transformers")
    import_libraries()
    from ..extensions import load_extensions
    from .configuration import canonical, load_config, read_configuration, set_dtype
    from .session import open_session, require_limits, session_content, trace_session
    from .stamping import NotStamped, first_line, stamped_content
    from .writer import write_content

    load_extensions()
    configuration = canonical(read_configuration(options.model))
    config = load_config(options.model, trust_remote_code=options.trust_remote_code)
    report("observing the twin")
    set_dtype(config, options.dtype)
    session = open_session(config, options.task, shape=options.shape, prefill=options.prefill, inputs=options.inputs)
    # Whoever waits for the capture can tell by this whether it is what he wants, before the work that takes time.
    dims = {name: sorted(found.ranges) for name, found in session.dims.items()}
    report("tracing", components=dims)
    content = None
    if options.trace == "stamped":
        try:
            content = stamped_content(session, configuration, report, attention=options.attention)
        except NotStamped as error:
            if error.tried:
                report(f"tracing all layers: {error}")
        except Exception as error:  # noqa: BLE001 - code of the model's own; a trace of all layers says whether it is at fault
            report(f"tracing all layers: {first_line(error)}")
    if content is None:
        trace_session(session, report, attention=options.attention)
        require_limits(session)
        content = session_content(session, configuration)
    report("writing")
    write_content(options.output, content)
    report(
        "done",
        components=[each["name"] for each in content.document["components"]],
        export_cpu=session.cpu_seconds["export"],
        serialize_cpu=session.cpu_seconds["serialize"],
    )


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # torch 2.13 may crash while it frees fake tensors at exit
