"""Sweeps over families: limits of their processes, what they keep, and what they report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from argosy import ExportError
from captured import run_python
from sweeps import ROOT, capture_report, component_report, live_report
from sweeps.families import KINDS, Family, of_results, read_families
from sweeps.family_sweep import main
from sweeps.journal import Journal
from sweeps.live import changed_by_failures


SCRIPT = """
import json, pathlib, sys, time
sys.path.append(sys.argv[2])
from sweeps.processes import Limits, run_jobs

class Script:
    def __init__(self, name):
        self.name, self.key = name, (name,)

    def run(self, result):
        result.write_text(json.dumps({"step": "trace"}))
        if self.name == "crash":
            sys.exit("it broke")
        while self.name == "slow":
            pass
        if self.name == "large":
            held = bytearray(400 << 20)
            time.sleep(60)
        result.write_text(json.dumps({"status": "ok", "nodes": 3}))

outcomes = {}
jobs = [Script(name) for name in ("fine", "crash", "slow", "large")]
done = lambda job, outcome: outcomes.update({job.name: outcome})
run_jobs(jobs, Limits(cpu_seconds=1.5, memory_mb=300), 2, pathlib.Path(sys.argv[1]), done)
print(json.dumps(outcomes))
"""


def test_processes_end_at_their_limits(tmp_path):
    outcomes = json.loads(run_python("-c", SCRIPT, str(tmp_path), str(ROOT / "tests")))
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


def test_report_counts():
    families = read_families(only="llama,mistral,vit")
    results = {
        ("llama", "ours"): {"status": "ok", "twin": True, "components": {"decode": {"nodes": 5}}, "nodes": 5},
        ("llama", "peer"): {"status": "wrong", "reason": "off by | 1"},
        ("mistral", "ours"): {"status": "failed", "reason": "no\nluck"},
        ("vit", "ours"): {"status": "ok", "twin": True, "edges": 4, "edges_ok": 4, "edges_reason": ""},
        ("vit", "peer"): {"status": "ok"},
    }
    document = capture_report.document(families, results, {"torch": "1"})
    counts = {
        row["kind"]: (row["tried"], row["twins"], row["ours"], row["ours_edges"], row["peer"], row["peer_traced"])
        for row in document["summary"]
    }
    assert counts == {"causal LM": (2, 1, 1, 0, 0, 1), "vision": (1, 1, 1, 1, 1, 1), "total": (3, 2, 2, 1, 1, 2)}
    text = capture_report.render(document)
    assert "| total | 3 | 2 | 2 | 1 | 2 | 1 | 2 |" in text
    assert "- **mistral** (failed): no luck" in text and "- **llama** (wrong): off by / 1" in text


def test_command(tmp_path):
    """One family through both tools; a second run with --resume starts no process, and the data alone gives the same page."""
    where = ["--work", str(tmp_path / "work"), "--output", str(tmp_path / "out")]
    command = [str(ROOT / "tests/sweeps"), "capture", *where]
    assert "[2/2] vit peer: " in run_python(*command, "--only", "vit")
    file, page = tmp_path / "work/capture.jsonl", tmp_path / "out/capture.md"
    journal = Journal(file)
    journal.versions = journal.last_versions()
    results = journal.read()
    ours, peer = results["vit", "ours"], results["vit", "peer"]
    assert ours["status"] == "ok", ours
    assert ours["class"] == "ViTForImageClassification" and ours["nodes"] > 50
    assert ours["cpu_seconds"] > 0 and ours["peak_mb"] > 100
    assert peer["status"] in ("ok", "absent"), peer
    text = page.read_text()
    assert "| vit | ViTForImageClassification |" in text
    assert len(file.read_text().splitlines()) == 2
    with file.open("a") as half:
        half.write('{"key": ["vit", "ou')
    assert run_python(*command, "--only", "vit", "--resume").startswith("1 of 146 families captured")
    assert page.read_text() == text
    page.unlink()
    assert main(["capture", *where, "--no-run"]) == 0
    assert page.read_text() == text


def test_report_by_components() -> None:
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
    document = component_report.document("onnx", families, results, {"torch": "2.13"})
    total = document["summary"][-1]
    assert (total["components"], total["right"], total["captured"], total["right_of_captured"]) == (3, 1, 2, 1)
    assert (total["peer_components"], total["peer_right"], total["peer_traced"], total["both"]) == (2, 1, 2, 1)
    text = component_report.render(document)
    assert "encoder, decoder (no)" in text and "**vit** (failed): tracing model: no" in text


def test_data_is_kept_by_versions_and_the_later_result_counts(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "x.jsonl", {"torch": "2"})
    for key, status in ((("bert", "onnx"), "wrong"), (("bert", "onnx"), "ok"), (("t5", "onnx"), "ok"), (("t5", "onnx_peer"), "ok")):
        journal.add(key, {"status": status})
    journal.forget({("t5", "onnx")})
    assert journal.read() == {("bert", "onnx"): {"status": "ok"}, ("t5", "onnx_peer"): {"status": "ok"}}
    assert Journal(journal.path, {"torch": "3"}).read() == {}
    assert journal.last_versions() == {"torch": "2"} and Journal(tmp_path / "absent").last_versions() == {}
    listed = [Family("t5", "t5", "seq2seq"), Family("vit", "vit", "vision")]
    assert of_results(listed, journal.read()) == [listed[0], Family("bert", "bert", "other")]


def test_a_page_of_live_models_has_the_peer_of_exports(tmp_path: Path) -> None:
    outcome = {"class": "X", "components": {"model": {"status": "ok"}}, "twin": True, "status": "ok", "reason": "", "cpu_seconds": 1.0}
    versions = {"torch": "2", "onnxruntime": "1"}
    Journal(tmp_path / "onnx.jsonl", versions).add(("bert", "onnx_peer"), outcome)
    Journal(tmp_path / "live-onnx.jsonl", versions).add(("bert", "live-onnx"), outcome)
    assert main(["live-onnx", "--no-run", "--work", str(tmp_path), "--output", str(tmp_path)]) == 0
    assert "| bert | X | encoder | ok | model |  | 1.0 | ok | 1 of 1 | 1.0 |" in (tmp_path / "live-onnx.md").read_text()


def test_report_of_live_models() -> None:
    right = {"status": "ok", "calls": {"traced": True, "other": True}}
    wrong = {"status": "wrong", "calls": {"traced": True, "other": False}}
    results = {
        ("t5", "live-onnx"): {"status": "wrong", "reason": "decode: other: off", "twin": True, "changed": ["a configuration"],
                              "components": {"model": right, "prefill": right, "decode": wrong}},
        ("t5", "onnx_peer"): {"status": "ok", "twin": True, "components": {"prefill": right, "decode": right}},
        ("vit", "live-onnx"): {"status": "ok", "twin": True, "components": {"model": right}},
    }  # fmt: skip
    families = [Family("t5", "t5", "seq2seq"), Family("vit", "vit", "vision")]
    document = live_report.document("onnx", families, results, {"torch": "2.13"})
    total = document["summary"][-1]
    assert total["ours"] == {"parts": 4, "right": 3, "traced": 4} and total["peer"] == {"parts": 2, "right": 2, "traced": 2}
    assert total["both"] == {"families": 1, "ours": 0, "peer": 1}
    text = live_report.render(document)
    assert "model, prefill, decode (no) | 1 |" in text and "- **t5**: decode" in text


def test_a_model_that_an_export_changes_is_told_of() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())

    class Careless:
        def export(self, model, inputs, config):
            model.training = not model.training
            model(**inputs)

    changed = changed_by_failures(Careless(), None, model, {"input": torch.ones(2, 3)})
    assert changed == ["model.training after a RuntimeError", "model.training after a KeyboardInterrupt"]
