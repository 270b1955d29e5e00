"""Exports the corpus of tiny models: OUT_DIR/NAME.pt2 and OUT_DIR/NAME.inputs.pt for each.

NAME.inputs.pt holds {"traced": [...], "other": [...]}: the leaves of (args, kwargs) of two calls, in the order of the
archive's input spec. Every exported program is run on both and must agree with the model it came from.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import sys
import tempfile
import time
import warnings
from pathlib import Path

from archive import count_ops, read_program
from worker_pool import run_jobs, serve


def export_case(name: str, out_dir: Path) -> dict:
    import torch
    import torch._dynamo
    from models import cases_by_name
    from models.case import Decompose, build_sample
    from torch.utils._pytree import tree_flatten
    from transformers.exporters.utils import apply_patches

    torch._dynamo.config.fake_tensor_cache_enabled = False  # traces are faster without
    case = cases_by_name()[name]
    started = time.process_time()
    sample = build_sample(case)
    eager = copy.deepcopy(sample.module)
    args, kwargs = copy.deepcopy((sample.traced.args, sample.traced.kwargs))
    with torch.set_grad_enabled(case.with_grad), apply_patches("dynamo") if case.patched else contextlib.nullcontext():
        program = torch.export.export(sample.module, args, kwargs, dynamic_shapes=sample.dynamic_shapes, strict=False)
        if case.decompose is Decompose.WRITES:
            program = program.run_decompositions({})
        elif case.decompose is Decompose.CORE_ATEN:
            program = program.run_decompositions()
    # Moved to its name when all is well, so that an archive that exists is complete. Saved before it runs, because a
    # run may change the buffers.
    with tempfile.TemporaryDirectory(dir=out_dir, prefix=f".{name}.") as directory:
        partial = Path(directory) / f"{name}.pt2"
        torch.export.save(program, partial)
        flat_inputs = {}
        exported = program.module()
        for which, inputs in {"traced": sample.traced, "other": sample.other}.items():
            flat_inputs[which], spec = tree_flatten((inputs.args, inputs.kwargs))
            if spec != program.call_spec.in_spec:
                raise ValueError(f"the {which} inputs have another structure than the exported program")
            compare_to_eager(eager, exported, inputs)
        torch.save(flat_inputs, out_dir / f"{name}.inputs.pt")
        partial.replace(out_dir / f"{name}.pt2")

    ops = count_ops(read_program(out_dir / f"{name}.pt2"))
    return {"nodes": ops.total(), "ops": len(ops), "seconds": time.process_time() - started}


def compare_to_eager(eager, exported, inputs) -> None:
    import torch
    from torch.utils._pytree import tree_leaves

    results = []
    for module in (eager, exported):
        args, kwargs = copy.deepcopy((inputs.args, inputs.kwargs))
        given = tree_leaves((args, kwargs))  # before the call: a cache object may hold other tensors after it
        with torch.no_grad():
            output = module(*args, **kwargs)
        results.append(tree_leaves((output, given)))
    expected, actual = results
    if len(expected) != len(actual):
        raise ValueError(f"the model gives {len(expected)} values, the exported program {len(actual)}")
    for a, b in zip(expected, actual, strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(b, a, equal_nan=True)
        elif a != b:
            raise ValueError(f"the model gives {a}, the exported program {b}")


def worker(out_dir: Path) -> None:
    import torch
    import transformers

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    serve(lambda name: export_case(name, out_dir))


def export_all(out_dir: Path, names: list[str], jobs: int, report=None) -> dict[str, dict]:
    """By name: {"nodes", "ops", "seconds"}, or {"error"}."""
    out_dir.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, str(out_dir), "--worker"]
    return run_jobs(command, {name: name for name in names}, jobs, report)


def is_exported(out_dir: Path, name: str) -> bool:
    return (out_dir / f"{name}.pt2").exists() and (out_dir / f"{name}.inputs.pt").exists()


def main() -> int:
    parser = argparse.ArgumentParser(description="export the corpus of tiny models as .pt2 archives")
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--only", help="names of models, separated by commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.out_dir.resolve())

    from models import cases_by_name

    cases = cases_by_name()
    names = options.only.split(",") if options.only else list(cases)
    if unknown := [name for name in names if name not in cases]:
        parser.error(f"no such model: {', '.join(unknown)}")
    row = "{:<32} {:<20} {:>6} {:>5} {:>8}"
    print(row.format("name", "kind", "nodes", "ops", "CPU s"))

    def report(name: str, answer: dict) -> None:
        figures = (
            ("", "", "failed") if "error" in answer else (answer["nodes"], answer["ops"], f"{answer['seconds']:.1f}")
        )
        print(row.format(name, cases[name].kind, *figures), flush=True)

    answers = export_all(options.out_dir.resolve(), names, options.jobs, report)
    failed = {name: answer for name, answer in answers.items() if "error" in answer}
    total = sum(answer.get("seconds", 0) for answer in answers.values())
    print(f"{len(answers) - len(failed)} exported, {len(failed)} failed, {total:.0f} CPU s")
    for name, answer in failed.items():
        print(f"\n{name}: {answer['error']}\n{answer.get('traceback', '')}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
