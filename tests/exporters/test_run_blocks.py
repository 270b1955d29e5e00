"""The sweep "blocks" finds the blocks of a document, runs them with the names changed, and tells what ran from what did not."""

from __future__ import annotations

from pathlib import Path

from sweeps.block_text import find_blocks
from sweeps.blocks import Outcome, judge, render, row_of, rows_that_differ, run_documents

PAGE = """Some page

Short use first:

exporter = DynamoExporter()
exported = exporter.export(model, inputs)

Because the text goes on

pip install torch

Tabs
Other tab
from transformers.exporters import DynamoExporter
import torch

model = torch.nn.Linear(3, 2)
inputs = {"input": torch.rand(2, 3)}

# a comment
components = {"only": DynamoExporter().export(model, inputs)}
# components = {"only": ExportedProgram}

Limits and more

>>> program = DynamoExporter().export(model, inputs)
>>> outputs = program.module()(**inputs)

The end
"""

FENCED = """# Title

```
optimum-cli export executorch \\
  --model <model-id> \\
  --qlinear 8w
  ...etc...
```

The export has the following methods:
- `encoder`: one
- `vision` or `audio`: the other

```
-  old
+  new
```

```python
import torch
```

```
torch.onnx.export(
    model,
    kwargs=kwargs,
```

```
with config.patched(model, mod
    check(
```

```
data = observer.check_discrepancies(file)
# data = {"a": Other}
```
"""


def test_blocks_of_a_page_without_fences() -> None:
    first, install, whole, prompts = find_blocks(PAGE)
    assert first.line == 5 and first.missing == ["DynamoExporter", "model", "inputs"]
    assert install.kind == "shell"
    assert whole.text.startswith("from argosy.exporters import") and whole.text.rstrip().endswith("ExportedProgram}")
    assert whole.changes == ["transformers.exporters → argosy.exporters"]
    assert prompts.is_prompt and prompts.bound == {"program", "outputs"} and ">>>" not in prompts.text


def test_blocks_between_fences() -> None:
    command, change, python, cut, text, rows = find_blocks(FENCED)
    assert command.text.startswith("argosy export executorch") and "etc" not in command.text and "<" not in command.text
    assert "following methods" in command.after and "old" not in command.after
    assert [change.kind, python.kind, text.kind, rows.kind] == ["diff", "python", "text", "python"]
    assert cut.kind == "python" and "cuts off" in cut.changes[0] and "observer" in cut.missing


def test_documents_are_run(tmp_path: Path) -> None:
    wrong = '```python\nparts = {"one": 1}\n# parts = {"two": int}\n```\n\n```python\nprint(undefined)\n```\n\n```python\nfine = 1\n```\n'
    page = "### What differs from it\n\n| there | here |\n|---|---|\n| a call of `undefined()` | none |\n"
    outcomes, others = run_documents([PAGE, wrong], tmp_path, page)
    assert [each.state for each in outcomes] == ["ran"] * 4, [each.reason for each in outcomes]
    assert "run after line" in outcomes[0].changes[-1]
    assert [each.state for each in others] == ["failed", "differs", "ran"]
    assert others[0].reason == "parts has no two" and others[1].row == "a call of `undefined()`"
    report = render([PAGE, wrong], [outcomes, others])
    assert "| Some page Short use first: | 4 | 4 | 0 | 0 |" in report and "failed (parts has no two)" in report


def test_what_an_export_computes_is_looked_at(tmp_path: Path) -> None:
    """A program that gives other numbers than the model is no success: a fix that doubles what comes out."""
    text = """```python
import torch
from transformers.exporters import DynamoExporter
from argosy.patching import register_fx_node_fix

@register_fx_node_fix("dynamo")
def spoil(module, node):
    if node.target is torch.ops.aten.add.Tensor:
        node.target = torch.ops.aten.sub.Tensor
    return False

class Add(torch.nn.Module):
    def forward(self, x):
        return x + 1

program = DynamoExporter().export(Add(), {"x": torch.rand(2)})
```
"""
    ((outcome,),) = run_documents([text], tmp_path, "")
    assert outcome.state == "failed" and "does not give what the model gives" in outcome.reason


def test_rows_that_differ() -> None:
    page = "## What differs from A\n\n| there | here |\n|---|---|\n| `call(name=…)` | x |\n\n## Other\n\n| `word` | y |\n"
    rows = rows_that_differ(page)
    assert row_of("call(2, name=3)", rows) == "`call(name=…)`"
    assert not row_of("call(2)", rows) and not row_of("word", rows)


def test_a_block_that_takes_names_from_one_that_differs() -> None:
    first, second, third = find_blocks("```python\npipe = special()\n```\n```python\nx = pipe + 1\n```\n```python\ny = 1 / 0\n```\n")
    outcomes = [Outcome(block, "failed") for block in (first, second, third)]
    judge(outcomes, [("`special`", [{"special"}])])
    assert [each.state for each in outcomes] == ["differs", "differs", "failed"]
