"""The uses of DynamoExporter that its users know from transformers, with the import changed and nothing else.

Run by test_examples.py in a process whose Hub is a local server: the models are small twins under the names of the real
ones. Prints what came out as one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer

from argosy.exporters import DynamoConfig, DynamoExporter, get_leaf_tensors
from argosy.exporters.utils import decompose_for_generation

TEXT_MODEL = "Qwen/Qwen3-0.6B"
PICTURE_MODEL = "Qwen/Qwen2-VL-2B-Instruct"


def difference(one: Any, other: Any) -> float:
    """The largest one between the tensors of two outputs."""
    ours, theirs = get_leaf_tensors(one), get_leaf_tensors(other)
    assert list(ours) == list(theirs)
    return max((ours[name] - theirs[name]).abs().max().item() for name in theirs)


def quick_start() -> dict:
    model = AutoModelForCausalLM.from_pretrained(TEXT_MODEL)
    tokenizer = AutoTokenizer.from_pretrained(TEXT_MODEL)
    inputs = tokenizer("Hello, world!", return_tensors="pt")

    exporter = DynamoExporter()
    config = DynamoConfig(dynamic=True)
    exported = exporter.export(model, inputs, config=config)

    outputs = exported.module()(**inputs)
    longer = tokenizer("Hello, whole wide world!", return_tensors="pt")
    return {
        "difference": max(
            difference(outputs, model(**inputs)), difference(exported.module()(**longer), model(**longer))
        ),
        "program": type(exported).__name__,
    }


def dynamic_shapes() -> dict:
    model = AutoModelForCausalLM.from_pretrained(TEXT_MODEL)
    tokenizer = AutoTokenizer.from_pretrained(TEXT_MODEL)
    inputs = tokenizer(["Hello, world!", "Hi"], padding=True, return_tensors="pt")

    batch = torch.export.Dim("batch", min=1, max=32)
    seq = torch.export.Dim("seq", min=1, max=2048)

    exporter = DynamoExporter()
    config = DynamoConfig(
        dynamic_shapes={"input_ids": {0: batch, 1: seq}, "attention_mask": {0: batch, 1: seq}},
        prefer_deferred_runtime_asserts_over_guards=True,
    )
    exported = exporter.export(model, inputs, config=config)
    other = tokenizer(["One", "Another one", "The last one"], padding=True, return_tensors="pt")
    ranges = sorted((int(each.lower), int(each.upper)) for each in exported.range_constraints.values())
    return {"difference": difference(exported.module()(**other), model(**other)), "ranges": ranges}


def load_processor() -> Any:
    """The processor as users get it, where there is torchvision. Without it transformers has none for videos, which the
    class insists on, but can put the rest together: the picture's part needs Pillow alone."""
    try:
        return AutoProcessor.from_pretrained(PICTURE_MODEL)
    except ImportError:
        from transformers import AutoImageProcessor, Qwen2VLProcessor

        tokenizer = AutoTokenizer.from_pretrained(PICTURE_MODEL)
        image_processor = AutoImageProcessor.from_pretrained(PICTURE_MODEL)
        Qwen2VLProcessor.check_argument_for_proper_class = lambda self, name, argument: None
        return Qwen2VLProcessor(image_processor, tokenizer, None, chat_template=tokenizer.chat_template)


def multimodal() -> dict:
    model = AutoModelForImageTextToText.from_pretrained(PICTURE_MODEL)
    processor = load_processor()
    url = os.environ["EXAMPLE_PICTURE"]
    messages = [
        {"role": "user", "content": [{"type": "image", "url": url}, {"type": "text", "text": "Describe this image."}]}
    ]
    text = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    inputs = processor(text=text, images=messages[0]["content"][0]["url"], return_tensors="pt").to(model.device)

    exporter = DynamoExporter()
    config = DynamoConfig(dynamic=True)
    components = exporter.export_for_generation(model, inputs, config=config)
    result = {"components": {name: type(program).__name__ for name, program in components.items()}}

    parts = decompose_for_generation(model, inputs)
    exported, differences = {}, {}
    for name, (submodel, subinputs) in parts.items():
        eager_outputs = submodel(**subinputs)
        exported[name] = exporter.export(submodel, subinputs, config=config)
        assert list(get_leaf_tensors(eager_outputs))
    for name, (submodel, subinputs) in decompose_for_generation(model, inputs).items():
        differences[name] = run_both(submodel, exported[name], subinputs)
    return {**result, "difference": max(differences.values()), "loop": list(exported)}


def run_both(submodel: torch.nn.Module, program: Any, inputs: dict) -> float:
    from argosy.exporters import prepare_for_export
    from argosy.observer.calls import copy_value

    _, inputs, _ = prepare_for_export(submodel, dict(inputs))
    return difference(program.module()(**copy_value(inputs)), submodel(**copy_value(inputs)))


def main() -> None:
    wanted = sys.argv[1:] or ["quick_start", "dynamic_shapes", "multimodal"]
    with torch.no_grad():
        print(json.dumps({name: globals()[name]() for name in wanted}))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # torch may crash while it frees fake tensors at exit
