"""The coverage command: limits of its processes, what it keeps, and what it reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from argosy import ExportError
from argosy.coverage.__main__ import read_published
from argosy.coverage.live import changed_by_failures
from argosy.coverage.live_report import write_live_report
from argosy.coverage.component_report import write_component_report
from argosy.coverage.families import KINDS, Family, read_families
from argosy.coverage.report import write_report
from captured import run_python


SCRIPT = """
import json, pathlib, sys, time
from argosy.coverage.processes import Job, Limits, run_jobs

class Script(Job):
    def run(self, result):
        result.write_text(json.dumps({"step": "trace"}))
        if self.family == "crash":
            sys.exit("it broke")
        while self.family == "slow":
            pass
        if self.family == "large":
            held = bytearray(400 << 20)
            time.sleep(60)
        result.write_text(json.dumps({"status": "ok", "nodes": 3}))

outcomes = {}
jobs = [Script(name, name, "ours") for name in ("fine", "crash", "slow", "large")]
done = lambda job, outcome: outcomes.update({job.family: outcome})
run_jobs(jobs, Limits(cpu_seconds=1.5, memory_mb=300), 2, pathlib.Path(sys.argv[1]), done)
print(json.dumps(outcomes))
"""


def test_processes_end_at_their_limits(tmp_path):
    outcomes = json.loads(run_python("-c", SCRIPT, str(tmp_path)))
    assert {name: outcome["status"] for name, outcome in outcomes.items()} == {
        "fine": "ok",
        "crash": "crash",
        "slow": "timeout",
        "large": "memory",
    }
    assert outcomes["fine"]["nodes"] == 3 and outcomes["fine"]["peak_mb"] > 1
    assert "it broke" in outcomes["crash"]["reason"]
    assert outcomes["slow"]["reason"] == "more than 1.5 s of CPU in: trace" and outcomes["slow"]["cpu_seconds"] >= 1.4
    assert outcomes["large"]["reason"] == "more than 300 MB in: trace"


def test_list_of_families(tmp_path):
    families = read_families()
    assert len({family.name for family in families}) == len(families) == 146
    assert {family.kind for family in families} == set(KINDS)
    own = tmp_path / "own.csv"
    own.write_text("family\nllama\nnew_model\n")
    assert [(f.model_type, f.kind) for f in read_families(own)] == [("llama", "causal LM"), ("new_model", "other")]
    assert [family.name for family in read_families(only="t5, vit")] == ["t5", "vit"]
    with pytest.raises(ExportError, match="no_such"):
        read_families(only="no_such")


def test_report_counts(tmp_path):
    families = read_families(only="llama,mistral,vit")
    results = {
        ("llama", "ours"): {"status": "ok", "twin": True, "components": {"decode": {"nodes": 5}}, "nodes": 5},
        ("llama", "peer"): {"status": "wrong", "reason": "off by | 1"},
        ("mistral", "ours"): {"status": "failed", "reason": "no\nluck"},
        ("vit", "ours"): {"status": "ok", "twin": True, "edges": 4, "edges_ok": 4, "edges_reason": ""},
        ("vit", "peer"): {"status": "ok"},
    }
    write_report(families, results, {"torch": "1"}, tmp_path)
    document = json.loads((tmp_path / "capture.json").read_text())
    counts = {
        row["kind"]: (row["tried"], row["twins"], row["ours"], row["ours_edges"], row["peer"], row["peer_traced"])
        for row in document["summary"]
    }
    assert counts == {"causal LM": (2, 1, 1, 0, 0, 1), "vision": (1, 1, 1, 1, 1, 1), "total": (3, 2, 2, 1, 1, 2)}
    text = (tmp_path / "capture.md").read_text()
    assert "| total | 3 | 2 | 2 | 1 | 2 | 1 | 2 |" in text
    assert "- **mistral** (failed): no luck" in text and "- **llama** (wrong): off by / 1" in text


def test_command(tmp_path):
    """One family through both tools; a second run with --resume starts no process."""
    command = ["-m", "argosy.coverage", "capture", "--only", "vit"]
    command += ["--work", str(tmp_path / "work"), "--output", str(tmp_path / "out")]
    assert "[2/2] vit peer: " in run_python(*command)
    document = json.loads((tmp_path / "out/capture.json").read_text())
    (row,) = document["families"]
    assert row["ours"]["status"] == "ok", row["ours"]
    assert row["ours"]["class"] == "ViTForImageClassification" and row["ours"]["nodes"] > 50
    assert row["ours"]["cpu_seconds"] > 0 and row["ours"]["peak_mb"] > 100
    assert row["peer"]["status"] in ("ok", "absent"), row["peer"]
    journal = tmp_path / "work/capture.jsonl"
    assert len(journal.read_text().splitlines()) == 2
    with journal.open("a") as file:
        file.write('{"family": "vit", "to')
    assert run_python(*command, "--resume").startswith("1 of 1 families captured")
    assert json.loads((tmp_path / "out/capture.json").read_text()) == document


def test_report_by_components(tmp_path: Path) -> None:
    part = {"calls": 9, "right": 9, "edges": 7, "edges_right": 7, "max_abs": 1e-6}
    wrong = {**part, "right": 8, "edges_right": 6}
    results = {
        ("t5", "onnx"): {"status": "wrong", "reason": "decoder | off", "twin": True, "captured": True,
                         "expected": ["encoder", "decoder"], "components": {"encoder": part, "decoder": wrong}},
        ("vit", "onnx"): {"status": "failed", "reason": "tracing model: no", "twin": True, "expected": ["model"]},
        ("t5", "onnx_peer"): {"status": "wrong", "twin": True, "components": {
            "prefill": {"status": "ok", "calls": {"traced": True, "other": True}},
            "decode": {"status": "wrong", "calls": {"traced": True, "other": False}}}},
    }  # fmt: skip
    families = [Family("t5", "t5", "seq2seq"), Family("vit", "vit", "vision")]
    write_component_report("onnx", families, results, {"torch": "2.13"}, tmp_path)
    total = json.loads((tmp_path / "onnx.json").read_text())["summary"][-1]
    assert (total["components"], total["right"], total["captured"], total["right_of_captured"]) == (3, 1, 2, 1)
    assert (total["peer_components"], total["peer_right"], total["peer_traced"], total["both"]) == (2, 1, 2, 1)
    text = (tmp_path / "onnx.md").read_text()
    assert "encoder, decoder (no)" in text and "**vit** (failed): tracing model: no" in text


def test_a_side_that_is_not_run_stays_in_the_report(tmp_path: Path) -> None:
    families = [Family("bert", "bert", "encoder"), Family("t5", "t5", "seq2seq")]
    outcome = {"class": "X", "components": {}, "status": "ok", "reason": "", "cpu_seconds": 1.0, "peak_mb": 2}
    versions = {"torch": "2", "onnxruntime": "1"}
    write_component_report("onnx", families, {("bert", "onnx_peer"): outcome}, versions, tmp_path)
    expected = {("bert", "onnx_peer"): outcome}
    assert read_published(tmp_path, "onnx", versions, "peer", "onnx_peer") == expected
    assert read_published(tmp_path, "live-onnx", versions, "peer", "onnx_peer") == expected
    assert read_published(tmp_path, "live-onnx", versions, "ours", "live-onnx") == {}
    assert read_published(tmp_path, "onnx", {**versions, "torch": "3"}, "peer", "onnx_peer") == {}
    assert read_published(tmp_path / "absent", "onnx", versions, "peer", "onnx_peer") == {}


def test_report_of_live_models(tmp_path: Path) -> None:
    right = {"status": "ok", "calls": {"traced": True, "other": True}}
    wrong = {"status": "wrong", "calls": {"traced": True, "other": False}}
    results = {
        ("t5", "live-onnx"): {"status": "wrong", "reason": "decode: other: off", "twin": True, "changed": ["a configuration"],
                              "components": {"model": right, "prefill": right, "decode": wrong}},
        ("t5", "onnx_peer"): {"status": "ok", "twin": True, "components": {"prefill": right, "decode": right}},
        ("vit", "live-onnx"): {"status": "ok", "twin": True, "components": {"model": right}},
    }  # fmt: skip
    families = [Family("t5", "t5", "seq2seq"), Family("vit", "vit", "vision")]
    write_live_report("onnx", families, results, {"torch": "2.13"}, tmp_path)
    total = json.loads((tmp_path / "live-onnx.json").read_text())["summary"][-1]
    assert total["ours"] == {"parts": 4, "right": 3, "traced": 4} and total["peer"] == {"parts": 2, "right": 2, "traced": 2}
    assert total["both"] == {"families": 1, "ours": 0, "peer": 1}
    text = (tmp_path / "live-onnx.md").read_text()
    assert "model, prefill, decode (no) | 1 |" in text and "- **t5**: decode" in text


def test_a_model_that_an_export_changes_is_told_of() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())

    class Careless:
        def export(self, model, inputs, config):
            model.training = not model.training
            model(**inputs)

    changed = changed_by_failures(Careless(), None, model, {"input": torch.ones(2, 3)})
    assert changed == ["model.training after a RuntimeError", "model.training after a KeyboardInterrupt"]
