"""Runs the rows of tests/ops in ExecuTorch's own kernels, compared with eager.

python tests/executorch/kernel_run.py --all [--jobs 2]        all rows; what is wrong, by its reason
python tests/executorch/kernel_run.py --op aten.add.Tensor    the rows of an op
python tests/executorch/kernel_run.py "elementwise-add.Tensor(…)" …
"""

from __future__ import annotations

import logging
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2] / "python")]
sys.path.append(str(Path(__file__).parents[1] / "ops"))

import torch  # noqa: E402
from op_case import Case  # noqa: E402
from rows import all_cases  # noqa: E402
from run import compare, export, live, module_of  # noqa: E402

from argosy.exporters import exporter_executorch  # noqa: E402
from argosy.exporters.configs import ExecutorchConfig  # noqa: E402

#: Rows have first dims of up to that size.
exporter_executorch._LARGEST_BATCH = 8


def run(case: Case, backend: str = "portable") -> None:
    """Raises Wrong, or whatever a step raises."""
    module = module_of(case)
    program = export(case, module)
    lowered = exporter_executorch.lower_program(live(case, program), ExecutorchConfig(backend=backend))
    try:
        for shape in case.shapes:
            compare(case, module, lowered, shape)
    finally:
        lowered.release()


def problem(case: Case) -> str:
    """Empty for a row that is right."""
    try:
        run(case)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is shown
        return f"{type(error).__name__}: {getattr(error, 'details', None) or error}"
    return ""


def _problem_of(name: str) -> tuple[str, str]:
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    return name, problem(next(case for case in all_cases() if case.id == name))


def main(arguments: list[str]) -> int:
    logging.disable(logging.WARNING)
    cases = all_cases()
    jobs = int(arguments[arguments.index("--jobs") + 1]) if "--jobs" in arguments else 1
    if arguments[:1] == ["--op"]:
        cases = [case for case in cases if case.op in arguments[1:]]
    elif arguments[:1] != ["--all"]:
        cases = [case for case in cases if case.id in arguments]
    groups: dict[str, list[str]] = {}
    names = [case.id for case in cases]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for name, text in pool.map(_problem_of, names):
            if text:
                groups.setdefault(text if len(names) < 20 else text.splitlines()[0][:160], []).append(name)
    failed = sum(map(len, groups.values()))
    print(f"{len(names) - failed} of {len(names)} rows are right")
    for reason, found in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(found)} x {reason}")
        print("\n".join(f"    {name}" for name in found))
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
