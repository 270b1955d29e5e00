"""`argosy lint`: nothing to say about good bundles, and the right thing about each spoilt one."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import onnx
import onnxruntime
import pytest
from lint_bundles import MAKERS, encoder, save
from lint_cases import CASES, Case

ROOT = Path(__file__).resolve().parents[2]
ARGOSY = Path(os.environ.get("ARGOSY_BIN", ROOT / "build/release/apps/cli/argosy"))
DOCUMENT = ROOT / "docs/lint.md"
PUBLIC_ISSUES = 10


def lint(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    done = subprocess.run([str(ARGOSY), "lint", *map(str, arguments)], capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def findings(folder: Path, *arguments: str) -> tuple[int, list[dict]]:
    code, out, error = lint(folder, "--json", *arguments)
    assert code in (0, 3), error
    return code, json.loads(out)["findings"]


@pytest.mark.parametrize("name", MAKERS)
def test_good_bundles_have_no_findings(name: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path)
    code, out, _ = lint(tmp_path, "--json")
    report = json.loads(out)
    assert report["findings"] == []
    assert code == 0
    assert report["engine"] == name.split("_")[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_seeded_violation_is_found(case: Case, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    MAKERS[case.bundle](folder)
    case.spoil(folder)
    engine = case.engine or case.bundle.split("_")[0]
    code, found = findings(folder, "--for", engine)
    messages = [each["what"] for each in found if each["rule"] == case.rule]
    assert any(case.message in message for message in messages), found
    assert all("\n" not in each["what"] + each["hint"] and each["hint"] for each in found)
    assert {each["rule"] for each in found} == {case.rule, *case.also}
    assert code == (3 if any(each["severity"] == "error" for each in found) else 0)


def rules() -> list[dict]:
    return json.loads(lint("--list-rules", "--json")[1])["rules"]


def test_every_rule_has_a_violation() -> None:
    # programs for ExecuTorch are spoiled in src/engines/executorch/lint_test.cpp
    seeded = {rule["rule"] for rule in rules() if rule["engine"] != "executorch"}
    missing = "rules without a case, or cases without a rule: tests/bundles/lint_cases.py, lint_engine_cases.py"
    assert seeded == {case.rule for case in CASES}, missing


def test_defects_of_public_issues_are_among_them() -> None:
    assert len({case.issue for case in CASES if case.issue}) >= PUBLIC_ISSUES


def rows_of_rules() -> list[str]:
    return [
        f"| {rule['engine'] or 'all'} | `{rule['rule']}` | {rule['severity']} | {rule['what']} |" for rule in rules()
    ]


def listed_rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ") and " | `" in line and line.count(" | ") == 3]


def test_documentation_lists_the_rules() -> None:
    hint = "python tests/bundles/lint_rules_table.py writes them"
    assert listed_rows(DOCUMENT.read_text()) == rows_of_rules(), hint


def test_text_has_a_line_for_each_finding(tmp_path: Path) -> None:
    MAKERS["genai"](tmp_path)
    (tmp_path / "model.onnx.data").unlink()
    code, out, _ = lint(tmp_path)
    assert code == 3
    first, last = out.splitlines()
    assert first.startswith(
        'error[external-data-missing] model.onnx: its weights are in "model.onnx.data", which is not there; copy'
    )
    assert last.startswith("as a bundle for genai: 1 error, 0 warnings (1 graph,")


def test_exit_codes(tmp_path: Path) -> None:
    assert lint(tmp_path / "none")[0] == 1
    (tmp_path / "file").write_text("")
    assert lint(tmp_path / "file")[0] == 1
    assert lint()[0] == 2
    assert lint(tmp_path, "--for", "nobody")[0] == 2
    assert lint(tmp_path)[0] == 3


def damage(data: bytes, chance: random.Random) -> bytes:
    """Cut, or with bytes changed, doubled or taken out."""
    if chance.random() < 0.2:
        return data[: chance.randrange(len(data))]
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(data))
        piece = chance.choice([bytes([chance.randrange(256)]), b"", data[at : at + 20] * 2, b"\xff" * 9, b"9" * 25])
        data = data[:at] + piece + data[at + chance.randrange(1, 4) :]
    return data


@pytest.mark.parametrize("name", MAKERS)
def test_damaged_files_never_crash(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    MAKERS[name](tmp_path)
    files = sorted(file for file in tmp_path.rglob("*") if file.suffix in (".onnx", ".json"))
    for _ in range(15):
        file = chance.choice(files)
        whole = file.read_bytes()
        file.write_bytes(damage(whole, chance))
        code, out, error = lint(tmp_path, "--json")
        assert code in (0, 3), (file, error)
        json.loads(out)
        file.write_bytes(whole)


@pytest.mark.parametrize(
    "content", [b"[" * 1_000_000, b'{"a":' * 1_000_000, b"[1," * 3_000_000, b'"' + b"\\u0000" * 100_000]
)
def test_large_and_deep_json_is_only_a_finding(content: bytes, tmp_path: Path) -> None:
    MAKERS["genai"](tmp_path)
    for file in ("tokenizer.json", "config.json"):
        (tmp_path / file).write_bytes(content)
    _, found = findings(tmp_path)
    assert {each["file"] for each in found if each["rule"] == "json-unreadable"} == {"config.json", "tokenizer.json"}


def test_files_beyond_the_limit_are_not_read(tmp_path: Path) -> None:
    MAKERS["genai"](tmp_path)
    with (tmp_path / "tokenizer.json").open("wb") as file:
        file.truncate(1 << 40)
    _, found = findings(tmp_path)
    assert any(each["rule"] == "json-unreadable" and each["file"] == "tokenizer.json" for each in found)


def test_pipes_and_endless_devices_are_not_read(tmp_path: Path) -> None:
    MAKERS["genai"](tmp_path)
    for name, target in (("more.onnx", "/dev/zero"), ("chat_template.json", "/dev/stdin")):
        (tmp_path / name).symlink_to(target)
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "config.json").unlink()
    os.mkfifo(tmp_path / "config.json")
    _, found = findings(tmp_path, "--for", "genai")
    assert {each["file"] for each in found if each["rule"] == "graph-unreadable"} == {"more.onnx", "pipe.onnx"}


def test_models_without_an_end_token_lack_none(tmp_path: Path) -> None:
    for name in ("optimum", "genai"):
        folder = tmp_path / name
        MAKERS[name](folder)
        for file in ("config.json", "generation_config.json"):
            content = json.loads((folder / file).read_text())
            (folder / file).write_text(json.dumps({**content, "eos_token_id": None}))
    content = json.loads((tmp_path / "genai/genai_config.json").read_text())
    del content["model"]["eos_token_id"]
    (tmp_path / "genai/genai_config.json").write_text(json.dumps(content))
    assert findings(tmp_path / "optimum") == (0, [])
    assert findings(tmp_path / "genai") == (0, [])


def test_graphs_may_share_data_of_one_of_them(tmp_path: Path) -> None:
    MAKERS["optimum_seq2seq"](tmp_path)
    save(encoder(), tmp_path / "encoder_model.onnx", "encoder_model.onnx_data")
    both = (tmp_path / "encoder_model.onnx").read_bytes()
    (tmp_path / "encoder_model_2.onnx").write_bytes(both)
    assert findings(tmp_path) == (0, [])


def test_sizes_of_caches_are_told_by_fields_of_the_configuration(tmp_path: Path) -> None:
    """Where another field is about heads too, num_key_value_heads is not that of all layers."""
    MAKERS["transformersjs"](tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    for more, rules in (({}, ["cache-shape"]), ({"kv_lora_rank": 8}, []), ({"global_head_dim": 8}, [])):
        (tmp_path / "config.json").write_text(json.dumps({**content, "num_key_value_heads": 1, **more}))
        assert [each["rule"] for each in findings(tmp_path)[1]] == rules


def test_one_size_describes_no_layers_that_differ(tmp_path: Path) -> None:
    import onnx

    MAKERS["optimum"](tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**content, "num_key_value_heads": 1}))
    assert "cache-shape" in [each["rule"] for each in findings(tmp_path)[1]]
    model = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    values = next(value for value in model.graph.input if value.name.endswith(".value"))
    values.type.tensor_type.shape.dim[3].dim_value += 1
    onnx.save(model, tmp_path / "model.onnx")
    assert "cache-shape" not in [each["rule"] for each in findings(tmp_path)[1]]


def test_snapshots_of_the_hub_are_links(tmp_path: Path) -> None:
    """ONNX Runtime opens graphs that are links to files beside their data, as in the Hub's cache."""
    snapshot, blobs = tmp_path / "snapshots/1", tmp_path / "blobs"
    MAKERS["optimum"](snapshot)
    blobs.mkdir()
    for number, file in enumerate(sorted(snapshot.iterdir())):
        file.rename(blobs / str(number))
        file.symlink_to(f"../../blobs/{number}")
    assert {each["rule"] for each in findings(snapshot)[1]} == {"link-outside"}
    onnxruntime.InferenceSession(snapshot / "model.onnx", providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(("count", "rule"), [(40_000, "external-data-missing"), (60_000, "graph-unreadable")])
def test_many_files_of_data_take_no_time(count: int, rule: str, tmp_path: Path) -> None:
    MAKERS["optimum"](tmp_path)
    made = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    for number in range(count):
        tensor = made.graph.initializer.add(name=str(number), data_type=onnx.TensorProto.FLOAT, data_location=1)
        tensor.external_data.add(key="location", value=f"data/{number}")
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    for engine in ("optimum", "transformersjs", "genai"):
        found = [each for each in findings(tmp_path, "--for", engine)[1] if each["rule"] == rule]
        assert len(found) == 1
