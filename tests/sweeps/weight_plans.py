"""Weight plans against transformers' own loading: tiny random checkpoints, planned, streamed by C++, compared bit for bit.

    python tests/sweeps weight-plans [MODEL_TYPE …] [--table FILE.md]

Without names: every model type that transformers has conversion rules for. Exits with 1 if a weight differs. Layouts are

    saved    what save_pretrained writes, which undoes conversions: the names and shapes found on the Hub
    own      the state dict itself, under the model's own names
    halved   saved, with a configuration that asks for bfloat16, so that weights are cast
"""

from __future__ import annotations

import argparse
import collections
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import PROGRAM
from .configurations import configuration
from .journal import Journal, Key
from .pages import installed, table, versions_text, write_page
from .processes import add_options, run_sweep
from .worker import preload

LAYOUTS = ("saved", "own", "halved")
#: Types without rules of their own whose checkpoints are special otherwise: joined projections, ties, buffers, names.
FURTHER_TYPES = ("bart", "bert", "gpt2", "gpt_oss", "llama", "phi3", "t5", "wav2vec2", "whisper")


@dataclass(frozen=True)
class Outcome:
    """What became of one checkpoint."""

    model_type: str
    layout: str
    status: str  # "equal", "no twin", "not loadable", "error" or "differs"
    weights: int = 0
    ops: str = ""
    tied: int = 0
    detail: str = ""

    @property
    def is_wrong(self) -> bool:
        return self.status in ("error", "differs")


def converted_types() -> list[str]:
    """Model types with conversion rules of their own, or whose classes have, and a few more."""
    from transformers import conversion_mapping
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    # class names stand for the model type whose names of classes begin alike
    keys = set(conversion_mapping._build_checkpoint_conversion_mapping()) - {"legacy"}
    types = {*FURTHER_TYPES, *(key for key in keys if key in CONFIG_MAPPING_NAMES)}
    plain = {name.replace("_", "").replace("-", ""): name for name in CONFIG_MAPPING_NAMES}
    for key in keys - types:
        stem = key.lower().replace("_", "")
        fits = [short for short in plain if stem.startswith(short)]
        if fits:
            types.add(plain[max(fits, key=len)])
    return sorted(types)


def make_twin(model_type: str) -> Any:
    from argosy.capture import twin

    return twin.build(configuration(model_type))


def write_layout(model: Any, layout: str, folder: Path) -> None:
    """A checkpoint of the model in that layout, with its configuration."""
    from safetensors.torch import save_file

    model.save_pretrained(folder)
    if layout == "own":
        for path in folder.glob("*.safetensors*"):
            path.unlink()
        state = {name: tensor.detach().clone().contiguous() for name, tensor in model.state_dict().items()}
        for name in set(model.all_tied_weights_keys) & set(state):
            del state[name]
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    if layout == "halved":
        path = folder / "config.json"
        config = json.loads(path.read_text())
        path.write_text(json.dumps({**config, "dtype": "bfloat16"}))


def check(model: Any, model_type: str, layout: str, folder: Path, argosy: Path) -> Outcome:
    """Plans a checkpoint, streams it, and compares it with what from_pretrained makes of it."""
    from argosy.capture import weight_plan

    write_layout(model, layout, folder)
    try:
        loaded, info = type(model).from_pretrained(folder, dtype="auto", output_loading_info=True)
    except Exception as error:
        return Outcome(
            model_type, layout, "not loadable", detail=f"from_pretrained: {type(error).__name__}: {error}"[:160]
        )
    if info["missing_keys"] or info["mismatched_keys"]:
        return Outcome(
            model_type, layout, "not loadable", detail=f"from_pretrained lacks {sorted(info['missing_keys'])[:2]}"
        )
    expected = loaded.state_dict()
    plan = weight_plan.make_weight_plan(folder)
    found, message = stream(plan, folder, argosy)
    if message:
        return Outcome(model_type, layout, "error", detail=message)
    wrong = differences(expected, found)
    ops = collections.Counter(step["op"] for weight in plan["weights"] for step in weight.get("steps", ()))
    return Outcome(
        model_type,
        layout,
        "differs" if wrong else "equal",
        weights=len(expected),
        ops=" ".join(f"{op}:{count}" for op, count in sorted(ops.items())),
        tied=sum("tied_to" in weight for weight in plan["weights"]),
        detail="; ".join(wrong[:3]),
    )


def stream(plan: dict[str, Any], folder: Path, argosy: Path) -> tuple[dict[str, Any], str]:
    """The weights that C++ makes of the folder's checkpoint, or what it says instead."""
    from safetensors import safe_open

    from argosy.capture import weight_plan

    # beside the folder: a second .safetensors file inside would be another checkpoint
    plan_path, out = folder.with_suffix(".plan.json"), folder.with_suffix(".safetensors")
    weight_plan.write_weight_plan(plan, plan_path)
    command = [argosy, "weights", "--plan", plan_path, "--model", folder, "-o", out]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {}, done.stderr.strip()
    with safe_open(out, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    plan_path.unlink()
    out.unlink()
    return tensors, ""


def differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    import torch

    wrong = [f"no {name}" for name in sorted(expected.keys() - found.keys())]
    wrong += [f"{name} is too much" for name in sorted(found.keys() - expected.keys())]
    for name in sorted(expected.keys() & found.keys()):
        a, b = expected[name], found[name]
        if a.dtype != b.dtype or a.shape != b.shape:
            wrong.append(f"{name} is {b.dtype}{list(b.shape)}, not {a.dtype}{list(a.shape)}")
        # bytes, so that -0 is not 0 and a NaN is itself
        elif not torch.equal(a.contiguous().flatten().view(torch.uint8), b.contiguous().flatten().view(torch.uint8)):
            wrong.append(f"{name} has other values")
    return wrong


def check_type(model_type: str, work: Path, argosy: Path, layouts: Iterable[str] = LAYOUTS) -> list[Outcome]:
    import torch

    try:
        model = make_twin(model_type)
    except Exception as error:
        return [Outcome(model_type, "", "no twin", detail=f"{type(error).__name__}: {error}"[:160])]
    # buffers and zeros of a fresh model would hide mistakes
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.dtype.is_floating_point:
                tensor.copy_(torch.randn(tensor.shape, generator=generator))
    outcomes = []
    for layout in layouts:
        folder = work / f"{model_type}-{layout}"
        try:
            outcomes.append(check(model, model_type, layout, folder, argosy))
        except Exception as error:
            outcomes.append(Outcome(model_type, layout, "error", detail=f"{type(error).__name__}: {error}"[:300]))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return outcomes


@dataclass(frozen=True)
class PlanJob:
    model_type: str
    program: Path

    @property
    def key(self) -> Key:
        return self.model_type, "weight-plan"

    def run(self, result: Path) -> None:
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        with tempfile.TemporaryDirectory(prefix="argosy-plans-") as work:
            outcomes = check_type(self.model_type, Path(work), self.program)
        counts = collections.Counter(outcome.status for outcome in outcomes)
        reason = "; ".join(f"{outcome.layout}: {outcome.detail}" for outcome in outcomes if outcome.detail)
        status = ", ".join(f"{count} {status}" for status, count in counts.items())
        result.write_text(json.dumps({"status": status, "reason": reason, "layouts": [asdict(each) for each in outcomes]}), encoding="utf-8")


def outcomes_of(model_type: str, result: dict[str, Any]) -> list[Outcome]:
    """What a job found; one that was ended is an error."""
    if "layouts" in result:
        return [Outcome(**each) for each in result["layouts"]]
    return [Outcome(model_type, layout, "error", detail=f"{result['status']}: {result['reason']}") for layout in LAYOUTS]


def page(outcomes: list[Outcome], versions: dict[str, str], summary: str) -> list[str]:
    """A row for each model type."""
    lines = [
        "# Weight plans",
        "",
        f"Written by `python tests/sweeps weight-plans --table`, with {versions_text(versions)}: every model type that transformers has "
        "conversion rules for and a few more, as a small random checkpoint in three layouts (described there), planned, streamed by "
        "`argosy weights`, and compared with what `from_pretrained` loads, bit for bit.",
        "",
        summary,
        "",
    ]
    by_type: dict[str, dict[str, Outcome]] = {}
    for outcome in outcomes:
        by_type.setdefault(outcome.model_type, {})[outcome.layout] = outcome
    rows = []
    for model_type, found in by_type.items():
        if "" in found:
            rows.append([model_type, "no twin", "", "", "", "", found[""].detail[:100]])
        else:
            saved = found["saved"]
            rows.append([model_type, *(found[layout].status for layout in LAYOUTS), saved.weights, saved.tied, saved.ops])
    return [*lines, *table(("model type", *LAYOUTS, "weights", "tied", "steps of the saved layout"), rows)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps weight-plans", description=__doc__.split("\n")[0])
    parser.add_argument("types", nargs="*", metavar="MODEL_TYPE")
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--table", type=Path, help="also write the outcomes as a page")
    add_options(parser)
    options = parser.parse_args(arguments)
    journal = Journal(options.work / "weight-plans.jsonl", installed("torch", "transformers"))
    jobs = [PlanJob(model_type, options.program) for model_type in options.types or converted_types()]
    results = run_sweep(jobs, journal, options, preload)
    outcomes = [outcome for job in jobs for outcome in outcomes_of(job.model_type, results[job.key])]
    for status, count in collections.Counter(outcome.status for outcome in outcomes).items():
        print(f"{status}: {count}")
    types = {o.model_type for o in outcomes if o.layout == "saved" and o.status == "equal"}
    own = {o.model_type for o in outcomes if o.layout == "own" and o.status == "equal"}
    moved = {o.model_type for o in outcomes if o.status == "equal" and o.layout == "saved" and o.ops}
    summary = (
        f"equal as saved and under their own names: {len(types & own)} types, {len(moved & own)} of them with steps"
    )
    print(summary)
    if options.table:
        write_page(options.table, page(outcomes, journal.versions, summary[0].upper() + summary[1:] + "."))
    return 1 if any(outcome.is_wrong for outcome in outcomes) else 0
