"""Models by task, each at two sizes: with small pictures, as twins have them, and with pictures as large as the model's own.

    python tests/sweeps tasks [TASK …] [--table FILE.md]

Each model is exported by ``--task`` to ONNX and compared with eager at every shape of the check. Exits with 1 if one is not right.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import PROGRAM
from .configurations import configuration
from .journal import Journal, Key
from .outcome import Report, first_line
from .pages import installed, table, versions_text, write_page
from .processes import add_options, run_sweep
from .worker import preload

#: Two models of each task, of different makes where there are two.
MODELS = {
    "any-to-any": ("voxtral", "qwen2_audio"),
    "audio-classification": ("wav2vec2", "audio-spectrogram-transformer"),
    "audio-frame-classification": ("wav2vec2", "wavlm"),
    "audio-xvector": ("wav2vec2", "unispeech-sat"),
    "automatic-speech-recognition": ("whisper", "hubert"),
    "depth-estimation": ("dpt", "depth_anything"),
    "document-question-answering": ("layoutlm", "layoutlmv3"),
    "feature-extraction": ("bert", "dinov2"),
    "fill-mask": ("roberta", "modernbert"),
    "image-classification": ("resnet", "vit"),
    "image-feature-extraction": ("convnext", "dinov2"),
    "image-segmentation": ("mask2former", "segformer"),
    "image-text-to-text": ("llava", "qwen2_vl"),
    "image-to-image": ("swin2sr",),
    "image-to-text": ("blip", "paligemma"),
    "instance-segmentation": ("maskformer", "mask2former"),
    "keypoint-detection": ("superpoint", "vitpose"),
    "keypoint-matching": ("efficientloftr", "lightglue"),
    "mask-generation": ("sam", "sam2"),
    "masked-im": ("vit", "swin"),
    "multiple-choice": ("bert", "xlm-roberta"),
    "next-sentence-prediction": ("bert", "mobilebert"),
    "object-detection": ("detr", "yolos"),
    "pose-estimation": ("vitpose", "sapiens2"),
    "question-answering": ("distilbert", "deberta-v2"),
    "semantic-segmentation": ("segformer", "upernet"),
    "sentence-similarity": ("mpnet", "xlm-roberta"),
    "summarization": ("bart", "t5"),
    "table-question-answering": ("tapas", "bart"),
    "text-classification": ("bert", "llama"),
    "text-generation": ("llama", "gpt2"),
    "text-to-audio": ("vits", "musicgen"),
    "text2text-generation": ("t5", "marian"),
    "time-series-classification": ("patchtst", "patchtsmixer"),
    "time-series-forecasting": ("timesfm", "timesfm2_5"),
    "time-series-regression": ("patchtst", "patchtsmixer"),
    "token-classification": ("bert", "electra"),
    "translation": ("marian", "m2m_100"),
    "video-classification": ("videomae", "timesformer"),
    "visual-document-retrieval": ("colpali", "colmodernvbert"),
    "visual-question-answering": ("vilt", "blip"),
    "zero-shot-audio-classification": ("clap",),
    "zero-shot-classification": ("bart", "deberta-v2"),
    "zero-shot-image-classification": ("clip", "siglip"),
    "zero-shot-object-detection": ("owlvit", "owlv2"),
}
#: Why a task has one model only.
ALONE = {
    "image-to-image": "transformers has no other",
    "zero-shot-audio-classification": "transformers has no other",
}
SIZES = ("small", "own")


@dataclass(frozen=True)
class TaskJob:
    task: str
    model_type: str
    size: str

    @property
    def key(self) -> Key:
        return f"{self.task} {self.model_type}", self.size

    def run(self, result: Path) -> None:
        import torch

        report = Report(result)
        torch.set_num_threads(1)  # threads do not survive a fork
        try:
            config = configuration(self.model_type)
            if self.size == "own" and not _keep_pictures(config):
                report.finish("same")
            else:
                check(self.task, config, report)
        except BaseException as error:
            report.finish("failed", f"{report.values.get('step', 'start')}: {first_line(error)}")


def check(task: str, config: Any, report: Report) -> None:
    from argosy.check.twin import TwinRequest, check_twin

    with tempfile.TemporaryDirectory() as folder:
        config.to_json_file(Path(folder) / "config.json", use_diff=False)
        checked = check_twin(TwinRequest(Path(folder), "onnx", task=task, program=str(PROGRAM)), report.step)
    wrong = [row for row in checked.rows if row.ok is False]
    calls = sum(row.ok is not None for row in checked.rows)
    report.update(**{"class": checked.model_class, "calls": calls, "right": calls - len(wrong)})
    if checked.unchecked or not calls:
        report.finish("failed", checked.unchecked or "no call was compared")
    else:
        report.finish("wrong" if wrong else "ok", "; ".join(f"{row.component} at {row.shape}: {row.note}" for row in wrong)[:600])


def _keep_pictures(config: Any) -> bool:
    """From now on this process leaves pictures of twins as large as the configuration says. Whether that changes this one's: many have
    none, or pictures of any size, of which the check tries those that the processor makes."""
    shrink = importlib.import_module("argosy.capture.twin.shrink")  # the package has a function of that name
    small = shrink.shrink(config).to_dict()
    vars(shrink)["shrink_pictures"] = lambda tree, nested: None
    return shrink.shrink(config).to_dict() != small


def write_table(path: Path, jobs: list[TaskJob], results: dict[Key, dict[str, Any]]) -> None:
    rows = []
    right: dict[str, list[bool]] = {}
    for job in jobs:
        if job.size != SIZES[0]:
            continue
        outcomes = [results[TaskJob(job.task, job.model_type, size).key] for size in SIZES]
        right.setdefault(job.task, []).append(outcomes[0]["status"] == "ok" and outcomes[1]["status"] in ("ok", "same"))
        said = [f"{each['right']} of {each['calls']}" if "calls" in each else each["status"] for each in outcomes]
        reasons = dict.fromkeys(each["reason"][:160].replace("|", "/") for each in outcomes if each.get("reason"))
        name = next((each["class"] for each in outcomes if "class" in each), job.model_type)
        rows.append((job.task, name, *said, "; ".join(reasons)))
    whole = sum(all(each) for each in right.values())
    alone = [f"{task} ({ALONE[task]})" for task in right if task in ALONE]
    write_page(path, [
        "# Tasks", "",
        "Made by `python tests/sweeps tasks`. Models by task, exported with `--task` to ONNX and compared with eager, call by call: as twins, "
        "with small pictures, and with pictures as large as the model's configuration says (`same`: it says none; pictures of any size are "
        "tried as large as the processor makes them, too). "
        f"{versions_text(installed('torch', 'transformers', 'onnxruntime'))}.", "",
        f"Of {len(right)} tasks {whole} are right with all their models at both sizes: {sum(map(sum, right.values()))} of {sum(map(len, right.values()))} models.",
        *([f"With one model only: {', '.join(alone)}."] if alone else []), "",
        *table(("task", "class", "small: right calls", "own size: right calls", "why not"), rows),
    ])  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps tasks", description="models by task, at two sizes")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(MODELS)}; else all")
    parser.add_argument("--table", type=Path, help="page to write")
    add_options(parser)
    options = parser.parse_args(arguments)
    if unknown := set(options.tasks) - MODELS.keys():
        parser.error(f"no task {', '.join(sorted(unknown))}")
    jobs = [TaskJob(task, model, size) for task in options.tasks or MODELS for model in MODELS[task] for size in SIZES]
    journal = Journal(options.work / "tasks.jsonl", installed("torch", "transformers", "onnxruntime"))
    results = run_sweep(jobs, journal, options, preload)  # type: ignore[arg-type]
    if options.table:
        everything = [TaskJob(task, model, size) for task, models in MODELS.items() for model in models for size in SIZES]
        write_table(options.table, [job for job in everything if job.key in results], results)
    return int(any(results[job.key]["status"] not in ("ok", "same") for job in jobs))
