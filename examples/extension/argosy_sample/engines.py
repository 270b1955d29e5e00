"""What an engine of ours wants of a folder: a file that lists graphs, their inputs, and what they hash to."""

import hashlib
import json

from argosy import BundleFinding, register_engine


def find_problems(bundle):
    """It opens no graph that has changed since."""
    for graph in json.loads((bundle.folder / "server.json").read_text())["graphs"]:
        if hash_of(bundle.folder / graph["file"]) != graph["sha256"]:
            yield BundleFinding("is not the graph that server.json lists", graph["file"], "export the model again")
    if "eos_token_id" not in bundle.config:
        yield BundleFinding("no text ends by itself", "config.json", "name eos_token_id there", is_warning=True)


@register_engine("sample_server", title="Sample server", graphs={"decode": "network.onnx"}, lint=find_problems)
def serve(bundle):
    inputs = {each["name"]: [port["name"] for port in each["inputs"]] for each in bundle.manifest["components"]}
    graphs = [
        {"file": each["file"], "sha256": hash_of(bundle.folder / each["file"]), "inputs": inputs[each["component"]]}
        for each in bundle.manifest["graphs"]
    ]
    vocabulary = bundle.config["vocab_size"]
    return {"server.json": json.dumps({"graphs": graphs}, indent=1), "data/vocabulary.bin": vocabulary.to_bytes(4, "little")}


def hash_of(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()
