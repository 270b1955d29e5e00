"""Runs requests in Optimum and prints a line of JSON for each; for an environment with optimum-onnx and transformers 4.

python optimum_worker.py REQUESTS.json
"""

import json
import sys

import torch
from optimum import onnxruntime as ort


def tensors(specs):
    dtypes = {"int64": torch.int64, "float32": torch.float32}
    return {name: torch.tensor(spec["data"], dtype=dtypes[spec["dtype"]]).reshape(spec["dims"]) for name, spec in specs.items()}


def opened(request):
    model = getattr(ort, request["class"]).from_pretrained(request["model"])
    if request["call"] == "generate":
        settings = model.generation_config
        for name in ("eos_token_id", "forced_eos_token_id", "forced_bos_token_id", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens"):
            setattr(settings, name, None)
        settings.num_beams, settings.do_sample = 1, False
        settings.pad_token_id = 0 if settings.pad_token_id is None else settings.pad_token_id
    return model


def generate(model, request):
    return model.generate(**tensors(request["inputs"]), max_new_tokens=request["max_new_tokens"]).tolist()


def steps(model, request):
    """Greedy tokens of an encoder and decoder, one call for each."""
    inputs, tokens, past = tensors(request["inputs"]), torch.tensor([[request["start"]]]), None
    for _ in range(request["max_new_tokens"]):
        made = model(**inputs, decoder_input_ids=tokens[:, -1:], past_key_values=past, use_cache=True)
        past = made.past_key_values
        tokens = torch.cat([tokens, made.logits[:, -1].argmax(-1, keepdim=True)], 1)
    return tokens.tolist()


def forward(model, request):
    inputs = tensors(request["inputs"])
    if "texts" in request:
        from transformers import AutoTokenizer

        inputs = dict(AutoTokenizer.from_pretrained(request["model"])(request["texts"], padding=True, return_tensors="pt"))
    made = getattr(model(**inputs), request["output"])
    return {"dims": list(made.shape), "data": made.flatten().tolist()}


for request in json.load(open(sys.argv[1]))["requests"]:
    try:
        with torch.no_grad():
            line = {"result": {"generate": generate, "steps": steps, "forward": forward}[request["call"]](opened(request), request)}
    except Exception as error:
        line = {"error": f"{type(error).__name__}: {str(error)[:400]}"}
    print(json.dumps({"name": request["name"], **line}), flush=True)
