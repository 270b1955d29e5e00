"""The uses of OnnxExporter that its users know from transformers, with the import changed and nothing else.

Run by test_examples.py in a process whose Hub is a local server, in a folder of its own. Prints what came out as one JSON
object.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import onnxruntime as ort
import torch
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer

sys.path.append(str(Path(__file__).parents[1] / "ops"))
from core import find_core  # noqa: E402

find_core()

from examples import PICTURE_MODEL, TEXT_MODEL, load_processor  # noqa: E402

from argosy.exporters import OnnxConfig, OnnxExporter, get_leaf_tensors, prepare_for_export  # noqa: E402
from argosy.exporters.utils import decompose_for_generation  # noqa: E402
from argosy.observer.calls import copy_value  # noqa: E402


def difference(actual, expected) -> float:
    tensors = list(get_leaf_tensors(expected).values())
    assert len(actual) == len(tensors)
    return max((torch.as_tensor(one) - other).abs().max().item() for one, other in zip(actual, tensors, strict=True))


def quick_start() -> dict:
    model = AutoModelForCausalLM.from_pretrained(TEXT_MODEL)
    tokenizer = AutoTokenizer.from_pretrained(TEXT_MODEL)
    inputs = tokenizer("Hello, world!", return_tensors="pt")

    exporter = OnnxExporter()
    config = OnnxConfig(dynamic=True)
    onnx_program = exporter.export(model, inputs, config=config)

    # save and load with ONNX Runtime
    onnx_program.save("model.onnx")

    session = ort.InferenceSession("model.onnx")
    ort_inputs = {k: v.numpy() for k, v in inputs.items()}
    outputs = session.run(None, ort_inputs)

    longer = tokenizer("Hello, whole wide world!", return_tensors="pt")
    found = [difference(outputs, model(**inputs)), difference(onnx_program(**longer), model(**longer))]
    return {"difference": max(found), "program": type(onnx_program).__name__}


def dynamic_shapes() -> dict:
    model = AutoModelForCausalLM.from_pretrained(TEXT_MODEL)
    tokenizer = AutoTokenizer.from_pretrained(TEXT_MODEL)
    inputs = tokenizer(["Hello, world!", "Hi"], padding=True, return_tensors="pt")

    batch = torch.export.Dim("batch", min=1, max=32)
    seq = torch.export.Dim("seq", min=1, max=2048)

    exporter = OnnxExporter()
    config = OnnxConfig(
        dynamic_shapes={"input_ids": {0: batch, 1: seq}, "attention_mask": {0: batch, 1: seq}},
        prefer_deferred_runtime_asserts_over_guards=True,
    )
    onnx_program = exporter.export(model, inputs, config=config)

    other = tokenizer(["One", "Another one", "The last one"], padding=True, return_tensors="pt")
    dims = {each.name: [dim.dim_param for dim in each.type.tensor_type.shape.dim] for each in onnx_program.model_proto.graph.input}
    return {"difference": difference(onnx_program(**other), model(**other)), "dims": dims}


def multimodal() -> dict:
    model = AutoModelForImageTextToText.from_pretrained(PICTURE_MODEL)
    processor = load_processor()
    url = os.environ["EXAMPLE_PICTURE"]
    messages = [{"role": "user", "content": [{"type": "image", "url": url}, {"type": "text", "text": "Describe this image."}]}]
    text = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    inputs = processor(text=text, images=messages[0]["content"][0]["url"], return_tensors="pt").to(model.device)

    exporter = OnnxExporter()
    config = OnnxConfig(dynamic=True)
    components = exporter.export_for_generation(model, inputs, config=config)

    differences = {}
    for name, (submodel, subinputs) in decompose_for_generation(model, inputs).items():
        _, prepared, _ = prepare_for_export(submodel, dict(subinputs))
        differences[name] = difference(components[name](**copy_value(prepared)), submodel(**copy_value(prepared)))
    return {"components": {name: type(each).__name__ for name, each in components.items()}, "differences": differences}


def main() -> None:
    with torch.no_grad():
        print(json.dumps({name: globals()[name]() for name in sys.argv[1:] or ["quick_start", "dynamic_shapes", "multimodal"]}))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # torch may crash while it frees fake tensors at exit
