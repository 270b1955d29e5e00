"""Others' packages: the sample of examples/extension, installed in a folder and used by the command and the exporters."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import onnx
import pytest
from cli_tool import REPOSITORY
from exporter_tool import PROGRAM, Exporter
from test_cpp_api import BUILD, do, install_library

SAVE = """
import sys
import torch
from argosy_sample.models import SampleConfig, SampleForCausalLM

torch.manual_seed(0)
sizes = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
for name in ("gate", "mix"):
    config = SampleConfig(mixes=name == "mix", vocab_size=64, max_position_embeddings=64, **sizes)
    SampleForCausalLM(config).save_pretrained(f"{sys.argv[1]}/{name}")
"""

LIVE = """
import sys
sys.path.append(sys.argv[2])
from core import find_core
find_core()
import onnx
import torch
from argosy import AutoHfExporter, DynamoExporter, ExecutorchExporter, OnnxExporter
from transformers import AutoConfig

AutoHfExporter.from_config({"export_format": "dynamo"})  # transformers knows the model type from now on
import argosy_sample.models as models
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained(sys.argv[1] + "/gate").eval()
inputs = {"input_ids": torch.arange(2, 12).reshape(2, 5), "use_cache": False}
config = {"dynamic": True, "check": True}
wanted = {"input_ids": torch.arange(3, 17).reshape(2, 7)}
expected = model(**wanted, use_cache=False).logits
found = {
    "dynamo": DynamoExporter().export(model, inputs, config).module()(**wanted).logits,
    "onnx": OnnxExporter().export(model, inputs, config)(**wanted)[0],
    "executorch": ExecutorchExporter().export(model, inputs, config)(**wanted)[0],
}
for name, logits in found.items():
    torch.testing.assert_close(torch.as_tensor(logits), expected, atol=1e-4, rtol=1e-4, msg=lambda text: f"{name}: {text}")
assert "aten.sigmoid.default" in AutoHfExporter.from_config({"export_format": "ops"}).export(model, inputs)
try:
    models.require_finite(torch.tensor(float("inf")))
except ValueError:
    pass
else:
    raise AssertionError("the patch is still there")

mixed = AutoModelForCausalLM.from_pretrained(sys.argv[1] + "/mix").eval()
proto = OnnxExporter().export(mixed, inputs, {"dynamic": True}).model_proto
onnx.checker.check_model(proto)
assert sum(node.domain == "com.example" and node.op_type == "Mix" for node in proto.graph.node) == 2
print("in order")
"""

def write_package(folder: Path, name: str, code: str, attribute: str = "") -> Path:
    """The sources of a package with one extension: a module, or a function in it."""
    module = name.replace("-", "_")
    folder.mkdir()
    (folder / f"{module}.py").write_text(code)
    (folder / "pyproject.toml").write_text(f"""[project]
name = "{name}"
version = "7.8"
[project.entry-points."argosy.extensions"]
{name.split("-")[0]} = "{module}{attribute and ':' + attribute}"
[tool.setuptools]
py-modules = ["{module}"]
""")
    return folder


def install(source: Path, target: Path) -> Path:
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--target",
        target,
        source,
    ]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@dataclass(frozen=True)
class Extended(Exporter):
    """The program with a Python that has other packages besides."""

    packages: list[Path] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        paths = [REPOSITORY / "python", *self.packages]
        # Not the warm one of other tests: that has loaded its extensions already, which are none.
        return {"ARGOSY_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(map(str, paths))}

    def python(self, *arguments: str | Path, code: int = 0) -> str:
        done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": self.environment()["PYTHONPATH"]})  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(REPOSITORY / "examples/extension", folder / "source")
    return install(folder / "source", folder / "packages")


@pytest.fixture(scope="module")
def extended(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Extended:
    folder = tmp_path_factory.mktemp("extended")
    return Extended(PROGRAM, folder / "cache", folder / "none", "onnx", [sample])


@pytest.fixture(scope="module")
def models(extended: Extended, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    extended.python("-c", SAVE, folder)
    return folder


@pytest.mark.parametrize("backend", ["onnx", "executorch", "pt2"])
def test_the_command_uses_the_package(extended: Extended, models: Path, tmp_path: Path, backend: str) -> None:
    """The op's rule, the patch and the model type are the package's. The engine is compared with the eager model."""
    output = tmp_path / ("out.pt2" if backend == "pt2" else "out")
    extended.run("export", backend, "--model", models / "gate", "--check", "off", output)
    checked = extended.json("check", output, "--against", models / "gate", "--calls", "edge")
    assert checked["rows"] and all(row["ok"] for row in checked["rows"])


def test_an_op_becomes_a_node_of_a_domain_of_its_own(extended: Extended, models: Path, tmp_path: Path) -> None:
    said = extended.export(models / "mix", tmp_path / "out")
    assert 'no runtime has "com.example::Mix"' in said
    model = onnx.load(tmp_path / "out/decode.onnx")
    onnx.checker.check_model(model)
    assert {each.domain: each.version for each in model.opset_import}["com.example"] == 2
    nodes = [node for node in model.graph.node if node.domain == "com.example"]
    assert [(node.op_type, len(node.input), len(node.output)) for node in nodes] == [("Mix", 2, 1)] * 2
    [weights] = nodes[0].attribute
    assert weights.name == "weights" and list(weights.floats) == [0.75, 0.25]
    for backend, text in (("executorch", "sample.mix.default has no kernel"), ("pt2", "argosy.register_decomposition")):
        said = extended.run("export", backend, "--model", models / "mix", "--check", "off", tmp_path / backend, code=1)[
            1
        ]
        assert text in said


@pytest.fixture(scope="module", params=["development", "library"])
def cpp_prefix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where CMake finds the static libraries, or the shared one of packages."""
    return install_library(tmp_path_factory.mktemp("prefix"), request.param)


@pytest.fixture(scope="module")
def mix_capture(extended: Extended, models: Path) -> Path:
    """It has the op sample::mix."""
    path = models / "mix.capture"
    extended.run("capture", "--model", models / "mix", "-o", path)
    return path


def built(source: Path, folder: Path, prefix: Path) -> Path:
    do("cmake", "-S", source, "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}")
    do("cmake", "--build", folder)
    return folder / "export_with_rule"


@pytest.fixture(scope="module")
def with_rule(cpp_prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(REPOSITORY / "examples/cpp_rule", tmp_path_factory.mktemp("with_rule"), cpp_prefix)


@pytest.mark.skipif(BUILD is None, reason="the libraries are not built: cmake --build --preset release")
@pytest.mark.parametrize("output", ["out", "out.pte", "out.pt2"])
def test_a_program_in_cpp_brings_a_rule(
    extended: Extended, models: Path, mix_capture: Path, with_rule: Path, tmp_path: Path, output: str
) -> None:
    """One rule for all formats. It goes before the node that the package wants; the check runs the file in its engine and
    the model with the op itself."""
    do(with_rule, mix_capture, models / "mix", tmp_path / output)
    if output == "out":
        assert not any(node.domain for node in onnx.load(tmp_path / "out/decode.onnx").graph.node)
    checked = extended.json("check", tmp_path / output, "--against", models / "mix", "--calls", "edge")
    assert checked["rows"] and all(row["ok"] for row in checked["rows"])


@pytest.mark.skipif(BUILD is None, reason="the libraries are not built: cmake --build --preset release")
def test_a_program_in_cpp_finds_what_was_captured_with_the_package(
    extended: Extended, models: Path, cpp_prefix: Path, tmp_path: Path
) -> None:
    """As long as the package is the same."""
    extended.export(models / "gate", tmp_path / "by_command")
    program = built(REPOSITORY / "examples/cpp", tmp_path / "build", cpp_prefix).with_name("export_cached")
    do(program, extended.cache, models / "gate", tmp_path / "by_api")
    found, expected = (tmp_path / name / "decode.onnx" for name in ("by_api", "by_command"))
    assert found.read_bytes() == expected.read_bytes()
    [remembered] = (extended.cache / "extensions").glob("*.json")
    kept = remembered.read_text()
    answer = json.loads(kept)
    answer["watched"][0]["modified"] += 1
    try:
        remembered.write_text(json.dumps(answer))
        done = subprocess.run(
            [program, extended.cache, models / "gate", tmp_path / "other"], capture_output=True, text=True
        )
    finally:
        remembered.write_text(kept)
    assert done.returncode == 1 and "has no capture" in done.stderr


#: In the place of the example's rule: each is wrong in its own way.
WRONG_RULES = {
    'graph.tensors("part");': "sample.mix.default has no argument",
    'graph.tensor("weights");': "argument weights of sample.mix.default is not a tensor",
    'graph.replace({graph.call("mull", {})});': "there is no function",
    'graph.replace({graph.softmax(graph.tensors("parts")[0], 7)});': "softmax has no dim 7",
    "graph.replace({argosy::OpTensor{12345}});": "a tensor that the rule was not given",
    'graph.has("bias");': "the rule does not replace its node",
    'throw std::runtime_error("of the rule");': "caught: of the rule",
    'auto rank = graph.rank(graph.tensors("parts")[0]); throw std::runtime_error(std::to_string(rank));': "caught: 3",
    'throw std::runtime_error(graph.text("weights"));': "argument weights of sample.mix.default is not a text",
    'throw std::runtime_error(std::to_string(graph.numbers("weights").size()));': "caught: 2",
}


@pytest.mark.skipif(BUILD is None, reason="the libraries are not built: cmake --build --preset release")
def test_a_wrong_rule_ends_the_export_with_its_error(
    models: Path, mix_capture: Path, cpp_prefix: Path, tmp_path: Path
) -> None:
    """And what a rule throws arrives at whoever runs the export. One program has all of these rules."""
    source = (REPOSITORY / "examples/cpp_rule/export_with_rule.cpp").read_text()
    before, _, rest = source.partition("const argosy::OpRule")
    rules = ", ".join(
        f'{{"sample::mix", [](argosy::OpGraph& graph) {{ (void)graph; {code} }}}}' for code in WRONG_RULES
    )
    rest = rest.partition("}};")[2].replace("kMix", "kRules[number]")
    rest = rest.replace("count != 4", "count != 5").replace(
        "  auto capture =", "  number = std::stoi(arguments[4]);\n  auto capture =", 1
    )
    rest = rest.replace("  auto bundle = export_model(*capture, *checkpoint, arguments[3]);", """
  argosy::Result<argosy::ExportedBundle> bundle;
  try {
    bundle = export_model(*capture, *checkpoint, arguments[3]);
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "caught: %s\\n", error.what());
    return 1;
  }""")  # fmt: skip
    (tmp_path / "source").mkdir()
    (tmp_path / "source/export_with_rule.cpp").write_text(
        f"#include <stdexcept>\n#include <string>\n{before}const argosy::OpRule kRules[] = {{{rules}}};\nint number = 0;\n{rest}"
    )
    shutil.copy(REPOSITORY / "examples/cpp_rule/CMakeLists.txt", tmp_path / "source")
    program = built(tmp_path / "source", tmp_path / "build", cpp_prefix)
    for i, said in enumerate(WRONG_RULES.values()):
        done = subprocess.run(
            [program, mix_capture, models / "mix", tmp_path / "out", str(i)], capture_output=True, text=True
        )
        assert done.returncode == 1 and said in done.stderr, (said, done.stderr)
        assert not (tmp_path / "out").exists()


def test_a_rule_in_cpp_is_short() -> None:
    """At most ten lines, as the documentation says."""
    source = (REPOSITORY / "examples/cpp_rule/export_with_rule.cpp").read_text()
    rule = source[source.index("const argosy::OpRule") :].partition("}};")[0]
    assert len(rule.splitlines()) <= 10


def test_exporters_use_the_package(extended: Extended, models: Path) -> None:
    assert extended.python("-c", LIVE, models, REPOSITORY / "tests/ops") == "in order\n"


def test_a_capture_made_without_an_extension_is_not_one_with_it(models: Path, tmp_path: Path) -> None:
    """And a broken one is a line that names it."""
    plain = Extended(PROGRAM, tmp_path / "cache", tmp_path / "none", "onnx")
    model = tmp_path / "llama"
    settings = json.loads((models / "gate/config.json").read_text())
    model.mkdir()
    (model / "config.json").write_text(
        json.dumps({**settings, "model_type": "llama", "architectures": ["LlamaForCausalLM"]})
    )
    plain.run("capture", "--model", model, "-o", tmp_path / "a.capture")
    assert "from the cache" in plain.run("capture", "--model", model, "-o", tmp_path / "a.capture")[1]

    code = "def start():\n    raise KeyError('no such\\nlayer')\n"
    source = write_package(tmp_path / "source", "broken-sample", code, "start")
    packages = install(source, tmp_path / "packages")
    broken = Extended(plain.program, plain.cache, plain.schemas, "onnx", [packages])
    said = broken.run("capture", "--model", model, "-o", tmp_path / "b.capture", code=1)[1]
    assert "extension 'broken' of broken-sample 7.8 cannot be loaded: KeyError: " in said
    assert "pip uninstall broken-sample" in said and "Traceback" not in said
    assert not (tmp_path / "b.capture").exists()

    # Its files are watched: mended, it is another one.
    (packages / "broken_sample.py").write_text("def start():\n    pass\n")
    assert "from the cache" not in broken.run("capture", "--model", model, "-o", tmp_path / "b.capture")[1]
    said = broken.run("capture", "--model", model, "-o", tmp_path / "b.capture")[1]
    assert "from the cache" in said
    shutil.rmtree(packages)
    assert "from the cache" in broken.run("capture", "--model", model, "-o", tmp_path / "c.capture")[1]
    assert (tmp_path / "c.capture").read_bytes() == (tmp_path / "a.capture").read_bytes()
