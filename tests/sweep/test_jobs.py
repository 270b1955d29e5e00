"""Jobs as lines, their ids and their parts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from argosy.errors import ExportError
from argosy.sweep.jobs import Job, flags, job_key, needs_of, parse_job, parse_size, read_jobs, shard
from argosy.sweep.journal import Journal, read_lines


def job(**fields: object) -> Job:
    return parse_job(json.dumps({"model": "org/name", **fields}), "jobs:1")


def test_an_id_is_of_what_is_exported_and_how() -> None:
    assert job().id == job(name="other", seconds=5, memory="8GB", family="x", backend="onnx").id
    others = [job(backend="pt2"), job(task="a"), job(check="off"), job(options={"opset": 20}), job(model="org/other"),
              parse_job('{"configuration": "bert"}', "")]  # fmt: skip
    assert len({each.id for each in [job(), *others]}) == 7
    assert job(options={"a": 1, "b": 2}).id == job(options={"b": 2, "a": 1}).id
    assert job_key(job(), "one") != job_key(job(), "two")


@pytest.mark.parametrize(("line", "says"), [
    ("{", "no JSON"),
    ("[]", "no JSON object"),
    ("{}", "names a model or a configuration"),
    ('{"model": "a", "configuration": "b"}', "one of them"),
    ('{"model": ""}', "no text, or empty"),
    ('{"model": 1}', "no text"),
    ('{"model": "a", "backend": "tflite"}', "no backend"),
    ('{"model": "a", "check": "maybe"}', "no check"),
    ('{"model": "a", "colour": "red"}', "has no 'colour'"),
    ('{"model": "a", "options": ["--opset"]}', "no object of flags"),
    ('{"model": "a", "options": {"a b": 1}}', "no object of flags"),
    ('{"model": "a", "options": {"output": "x"}}', "is the sweep's"),
    ('{"model": "a", "memory": "much"}', "not a size"),
    ('{"model": "a", "seconds": -1}', "no number"),
    ('{"model": "a\\u0000"}', "text that is none"),
    ('{"model": "a", "name": "\\ud83d"}', "text that is none"),
])  # fmt: skip
def test_lines_that_are_no_jobs_are_refused_with_their_place(line: str, says: str) -> None:
    with pytest.raises(ExportError, match="jobs:3: ") as caught:
        parse_job(line, "jobs:3")
    assert says in caught.value.message and caught.value.hint


def test_names_may_have_any_letters() -> None:
    assert job(name="модель 😀").name == "модель 😀"


def test_a_file_has_each_job_once_in_its_order(tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text('{"model": "b"}\n\n{"model": "a"}\n{"model": "b", "name": "again"}\n')
    assert [each.model for each in read_jobs(file)] == ["b", "a"]
    file.write_text("\n")
    with pytest.raises(ExportError, match="has no jobs"):
        read_jobs(file)
    with pytest.raises(ExportError, match="cannot be read"):
        read_jobs(tmp_path / "none")


@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_parts_have_each_job_once_and_differ_by_one_at_most(count: int) -> None:
    jobs = [job(model=f"org/{i}") for i in range(100)]
    parts = [shard(jobs, i, count) for i in range(1, count + 1)]
    assert sorted(each.model for part in parts for each in part) == sorted(each.model for each in jobs)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    mixed = [{each.id for each in shard(jobs[::-1], i, count)} for i in range(1, count + 1)]
    assert mixed == [{each.id for each in part} for part in parts]


def test_fine_tunes_share_what_is_made_for_a_configuration(tmp_path: Path) -> None:
    found = []
    for i, settings in enumerate(({"model_type": "bert", "_name_or_path": "x"}, {"transformers_version": "5", "model_type": "bert"},
                                  {"model_type": "bert", "hidden_size": 7})):  # fmt: skip
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(settings))
        found.append(needs_of(job(model=str(folder))))
    assert found[0] == found[1] != found[2]
    other = needs_of(job(model=str(tmp_path / "0"), backend="pt2"))
    assert other.configuration == found[0].configuration and other.check != found[0].check


def test_options_become_flags() -> None:
    options = {"for": "genai", "prefill": True, "offline": False, "adapter-apart": ["a=x", "b=y"], "opset": 20}
    assert list(flags(options)) == ["--for=genai", "--prefill", "--adapter-apart=a=x", "--adapter-apart=b=y", "--opset=20"]


def test_sizes() -> None:
    assert [parse_size(each) for each in (5, "5", "2kB", "1.5 MB", "1GiB")] == [5, 5, 2000, 1500000, 1 << 30]


def test_a_line_that_was_half_written_is_cut_off(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "results.jsonl")
    line = {"key": "k", "job": "j", "status": "right", "ended": 1.0}
    journal.add(line)
    journal.add(line | {"key": "é\ud800"})
    journal.close()
    whole = journal.path.read_bytes()
    for cut in (whole + b'{"key": "half', whole + b'{"key": "' + b"x" * 200_000):
        journal.path.write_bytes(cut)
        assert len(list(read_lines(tmp_path))) == 2
        Journal(journal.path).close()
        assert journal.path.read_bytes() == whole


def test_ignored_fields_are_those_of_captures() -> None:
    pytest.importorskip("torch", reason="the list of captures is beside it")
    from argosy.capture.configuration import IGNORED_FIELDS
    from argosy.sweep.jobs import IGNORED_FIELDS as OURS

    assert OURS == IGNORED_FIELDS


def test_a_warden_ends_what_is_left(tmp_path: Path) -> None:
    from argosy.sweep.warden import Warden

    warden = Warden()
    sleepers = [subprocess.Popen(["sleep", "60"], process_group=0) for _ in range(2)]
    for each in sleepers:
        warden.begin(each.pid)
    warden.end(sleepers[1].pid)
    warden.close()
    assert sleepers[0].wait(timeout=10) == -9
    assert sleepers[1].poll() is None
    os.killpg(sleepers[1].pid, 9)
    sleepers[1].wait()
