"""The uses of ExecutorchExporter that its users know from transformers, with the import changed and nothing else.

Run by test_examples.py in a process whose Hub is a local server, in a folder of its own. Prints what came out as one JSON
object.
"""

from __future__ import annotations

import json
import os
import sys

import torch
from onnx_examples import difference  # finds the extension, too
from examples import PICTURE_MODEL, TEXT_MODEL, load_processor
from executorch.runtime import Runtime
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer

from argosy.exporters import ExecutorchConfig, ExecutorchExporter, prepare_for_export
from argosy.exporters.utils import decompose_for_generation
from argosy.observer.calls import copy_value


def quick_start() -> dict:
    model = AutoModelForCausalLM.from_pretrained(TEXT_MODEL)
    tokenizer = AutoTokenizer.from_pretrained(TEXT_MODEL)
    inputs = tokenizer("Hello, world!", return_tensors="pt")

    exporter = ExecutorchExporter()
    config = ExecutorchConfig(backend="xnnpack", dynamic=True)
    et_program = exporter.export(model, inputs, config=config)

    # save for on-device deployment
    et_program.save("model.pte")

    program = Runtime.get().load_program("model.pte")
    method = program.load_method("forward")
    outputs = method.execute(list(inputs.values()))

    longer = tokenizer("Hello, whole wide world!", return_tensors="pt")
    found = [difference(outputs, model(**inputs)), difference(et_program(**longer), model(**longer))]
    return {"difference": max(found), "program": type(et_program).__name__}


def dynamic_shapes() -> dict:
    model = AutoModelForCausalLM.from_pretrained(TEXT_MODEL)
    tokenizer = AutoTokenizer.from_pretrained(TEXT_MODEL)
    inputs = tokenizer(["Hello, world!", "Hi"], padding=True, return_tensors="pt")

    batch = torch.export.Dim("batch", min=1, max=32)
    seq = torch.export.Dim("seq", min=1, max=2048)

    exporter = ExecutorchExporter()
    config = ExecutorchConfig(
        backend="xnnpack",
        dynamic_shapes={"input_ids": {0: batch, 1: seq}, "attention_mask": {0: batch, 1: seq}},
        prefer_deferred_runtime_asserts_over_guards=True,
    )
    et_program = exporter.export(model, inputs, config=config)
    return {"arenas": et_program.arenas, "dims": et_program._dims}


def multimodal() -> dict:
    model = AutoModelForImageTextToText.from_pretrained(PICTURE_MODEL)
    processor = load_processor()
    url = os.environ["EXAMPLE_PICTURE"]
    messages = [{"role": "user", "content": [{"type": "image", "url": url}, {"type": "text", "text": "Describe this image."}]}]
    text = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    inputs = processor(text=text, images=messages[0]["content"][0]["url"], return_tensors="pt").to(model.device)

    exporter = ExecutorchExporter()
    config = ExecutorchConfig(backend="xnnpack", dynamic=True)
    components = exporter.export_for_generation(model, inputs, config=config)

    differences = {}
    for name, (submodel, subinputs) in decompose_for_generation(model, inputs).items():
        _, prepared, _ = prepare_for_export(submodel, dict(subinputs))
        differences[name] = difference(components[name](**copy_value(prepared)), submodel(**copy_value(prepared)))
    return {"components": {name: type(each).__name__ for name, each in components.items()}, "differences": differences}


if __name__ == "__main__":
    with torch.no_grad():
        print(json.dumps({name: globals()[name]() for name in sys.argv[1:]}))
    sys.stdout.flush()
    os._exit(0)  # torch may crash while it frees fake tensors at exit
