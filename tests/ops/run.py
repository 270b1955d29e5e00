"""Runs rows: exported with torch.export, lowered, checked, run in ONNX Runtime, compared with eager.

    python tests/ops/run.py                     names of all rows
    python tests/ops/run.py "elementwise-add.Tensor(…)" …  runs some and says what is wrong
    python tests/ops/run.py --op aten.add.Tensor           runs all rows of an op
    python tests/ops/run.py --all                          runs all rows and lists what is wrong by its reason
"""

from __future__ import annotations

import logging
import operator
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "python")]

from op_case import SHAPES, Case
from core import find_core

find_core()

from argosy.compare import difference  # noqa: E402
from argosy.exporters.configs import OnnxConfig  # noqa: E402
from argosy.exporters.exporter_onnx import lower_program  # noqa: E402
from argosy.exporters.live import LiveProgram  # noqa: E402

#: Largest difference that is no mistake, of the output's scale, by the least exact dtype.
TOLERANCES = {torch.float16: 5e-3, torch.bfloat16: 4e-2}
DEFAULT_TOLERANCE = 1e-5


class Wrong(AssertionError):
    """What a row does that it should not."""


@dataclass
class Ran:
    """A row that is right, and the ops that its lowered graph had."""

    case: Case
    ops: list[str] = field(default_factory=list)


class _Module(torch.nn.Module):
    """A function as a module, with a signature of named tensors."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, inputs: list[torch.Tensor]) -> Any:
        return self.function(*inputs)


class _Wrapped(torch.nn.Module):
    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, inputs: list[torch.Tensor]) -> Any:
        return self.module(*inputs)


def module_of(case: Case) -> torch.nn.Module:
    torch.manual_seed(0)
    return _Wrapped(case.module()).eval() if case.module else _Module(case.function).eval()


def export(case: Case, module: torch.nn.Module) -> torch.export.ExportedProgram:
    shapes = {"inputs": [each.dynamic() for each in case.inputs]}
    dynamic = any(shapes["inputs"])
    with torch.no_grad():
        program = torch.export.export(
            module,
            (),
            kwargs={"inputs": case.make_inputs(0)},
            dynamic_shapes=shapes if dynamic else None,
            strict=False,
            prefer_deferred_runtime_asserts_over_guards=True,
        )
    if case.after is not None:
        case.after(program)
    return program


def op_names(program: torch.export.ExportedProgram) -> set[str]:
    """What the graphs of a program call, by the names of our IR."""
    names = set()
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if node.op == "call_function":
                names.add(name_of(node.target))
    return names


def name_of(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target._name}"
    if getattr(operator, target.__name__, None) is target:
        return f"_operator.{target.__name__}"
    return f"{(target.__module__ or 'builtins').split('.')[0]}.{target.__name__}"


def live(case: Case, program: torch.export.ExportedProgram) -> LiveProgram:
    names = [f"output_{i}" for i, _ in enumerate(program.graph_signature.user_outputs)]
    return LiveProgram(program, {"inputs": case.make_inputs(0)}, names)


def run(case: Case, opset: int | None = None, optimize: bool = True) -> Ran:
    """Raises Wrong, or whatever a step raises."""
    import onnx

    module = module_of(case)
    program = export(case, module)
    if missing := {case.op, *case.also} - op_names(program):
        raise Wrong(f"the exported graph has no {', '.join(sorted(missing))}; it has {', '.join(sorted(op_names(program)))}")
    lowered = lower_program(live(case, program), OnnxConfig(opset_version=opset, optimize=optimize))
    onnx.checker.check_model(lowered.model_proto, full_check=True)
    ran = Ran(case, list(lowered._core.ops))
    for shape in case.shapes:
        compare(case, module, lowered, shape)
    return ran


def compare(case: Case, module: torch.nn.Module, lowered: Any, shape: int) -> None:
    tensors = case.make_inputs(shape)
    try:
        with torch.no_grad():
            expected = leaves(module([tensor.clone() for tensor in tensors]))
    except Exception:
        if SHAPES[shape] == "edge":
            return  # eager has no answer either
        raise
    actual = list(lowered(inputs=tensors))[: len(expected)]
    where = f"at the {SHAPES[shape]} shape"
    if len(actual) != len(expected):
        raise Wrong(f"{where}: {len(actual)} outputs instead of {len(expected)}")
    for i, (want, have) in enumerate(zip(expected, actual, strict=True)):
        if want.dtype != have.dtype:
            raise Wrong(f"{where}: output {i} is {have.dtype} instead of {want.dtype}")
        if want.shape != have.shape:
            raise Wrong(f"{where}: output {i} has shape {tuple(have.shape)} instead of {tuple(want.shape)}")
        if case.only_shapes:
            continue
        found = difference({"output": want}, {"output": have})
        if found.scaled > tolerance(case, want):
            raise Wrong(f"{where}: output {i} is off by {found.abs:.2g}\n  expected {_show(want)}\n  got      {_show(have)}")


def tolerance(case: Case, want: torch.Tensor) -> float:
    if case.tolerance is not None:
        return case.tolerance
    if not want.is_floating_point() and not want.is_complex():
        return 0.0
    dtypes = [want.dtype, *(each.dtype for each in case.inputs)]
    return max((TOLERANCES.get(dtype, DEFAULT_TOLERANCE) for dtype in dtypes), default=DEFAULT_TOLERANCE)


def leaves(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    return []


def _show(tensor: torch.Tensor) -> str:
    return str(tensor.flatten()[:24].tolist())


def command(case: Case) -> str:
    """What reruns one row alone."""
    return f"python tests/ops/run.py {shlex.quote(case.id)}"


def problem(case: Case) -> str:
    """Empty for a row that is right."""
    try:
        run(case)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is shown
        return f"{type(error).__name__}: {getattr(error, 'details', None) or error}"
    return ""


def by_reason(cases: list[Case]) -> int:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        if text := problem(case):
            groups.setdefault(text.splitlines()[0][:160], []).append(case)
    failed = sum(map(len, groups.values()))
    print(f"{len(cases) - failed} of {len(cases)} rows are right")
    for reason, found in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(found)} x {reason}")
        print("\n".join(f"    {case.id}" for case in found[:12]) + ("\n    …" if len(found) > 12 else ""))
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    from rows import all_cases

    cases = all_cases()
    logging.disable(logging.WARNING)
    if not arguments:
        print("\n".join(case.id for case in cases))
        return 0
    if arguments[0] == "--all":
        return by_reason(cases)
    if arguments[0] == "--op":
        chosen = [case for case in cases if case.op in arguments[1:]]
    else:
        chosen = [case for case in cases if case.id in arguments]
    problems = [(case, problem(case)) for case in chosen]
    for case, text in problems:
        print(f"{case.id}: {text or 'ok'}")
    return 1 if not problems or any(text for _, text in problems) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
