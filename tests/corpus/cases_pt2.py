"""Archives of torch.export.save and captures that lie: about versions, graphs, sizes, weights."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Callable

from case import Case, write_bytes

STRIDED, F32, BOOL = 7, 7, 12


def size(value: int) -> dict:
    return {"as_int": value}


def tensor(dtype: int, sizes: list, strides: list | None = None) -> dict:
    if strides is None:
        strides = [1] * len(sizes)
    return {"dtype": dtype, "sizes": [size(s) if isinstance(s, int) else s for s in sizes], "requires_grad": False,
            "device": {"type": "cpu", "index": None}, "strides": [size(s) for s in strides],
            "storage_offset": size(0), "layout": STRIDED}  # fmt: skip


def value(name: str) -> dict:
    return {"as_tensor": {"name": name}}


def sym(name: str) -> dict:
    return {"as_sym_int": {"as_name": name}}


def argument(arg: dict, name: str = "") -> dict:
    return {"name": name, "arg": arg, "kind": 1}


def neg(operand: str, result: str) -> dict:
    """-size: an op that needs no schema file."""
    return {"target": "_operator.neg", "inputs": [argument(sym(operand), "a")], "outputs": [sym(result)],
            "metadata": {}, "name": result}  # fmt: skip


def expression(text: str) -> dict:
    return {"as_expr": {"expr_str": text, "hint": None}}


def graph(nodes: list, tensors: dict, numbers: dict, inputs: list, outputs: list) -> dict:
    return {"inputs": inputs, "outputs": outputs, "nodes": nodes, "tensor_values": tensors, "sym_int_values": numbers,
            "sym_bool_values": {}, "is_single_tensor_return": False, "custom_obj_values": {}, "sym_float_values": {}}  # fmt: skip


def cond(branch: dict, flag: str = "b") -> dict:
    branches = [argument({"as_graph": {"name": name, "graph": branch}}) for name in ("yes", "no")]
    return {"target": "torch.ops.higher_order.cond",
            "inputs": [argument(value(flag)), *branches, argument({"as_tensors": [{"name": "x"}, {"name": flag}]})],
            "outputs": [value("y")], "metadata": {}, "is_hop_single_tensor_return": False, "name": "cond"}  # fmt: skip


def nested(depth: int) -> dict:
    """Sub-graphs in sub-graphs; only one branch goes deep, so that the text stays small."""
    tensors = {"x": tensor(F32, [2]), "b": tensor(BOOL, []), "y": tensor(F32, [2])}
    leaf = graph([], {"x": tensor(F32, [2]), "b": tensor(BOOL, [])}, {}, [value("x"), value("b")], [value("x")])
    inner = leaf
    for _ in range(depth):
        node = cond(leaf)
        node["inputs"][1]["arg"]["as_graph"]["graph"] = inner
        inner = graph([node], tensors, {}, [value("x"), value("b")], [value("y")])
    return inner


def program() -> dict:
    """A sound one: x goes in, a parameter and -n come out."""
    return {
        "graph_module": {
            "graph": graph(
                [neg("n", "m")],
                {"p_w": tensor(F32, [2]), "x": tensor(F32, [2])},
                {"n": expression("Symbol('s0', positive=True, integer=True)"),
                 "m": expression("Mul(Integer(-1), Symbol('s0', positive=True, integer=True))")},
                [value("p_w"), value("x"), sym("n")], [value("p_w"), sym("m")],
            ),
            "signature": {
                "input_specs": [{"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
                                {"user_input": {"arg": value("x")}}, {"user_input": {"arg": sym("n")}}],
                "output_specs": [{"user_output": {"arg": value("p_w")}}, {"user_output": {"arg": sym("m")}}],
            },
            "module_call_graph": [],
            "metadata": {},
            "treespec_namedtuple_fields": {},
        },
        "opset_version": {"aten": 10},
        "range_constraints": {"s0": {"min_val": 2, "max_val": 64}},
        "schema_version": {"major": 8, "minor": 20},
        "verifiers": ["TRAINING"],
        "torch_version": "2.13.0",
        "guards_code": [],
    }  # fmt: skip


def weights_config() -> dict:
    return {"config": {"w": {"path_name": "weight_0", "is_param": True, "use_pickle": False,
                             "tensor_meta": tensor(F32, [2])}}}  # fmt: skip


def zipped(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0)), data)
    return buffer.getvalue()


def to_json(document: object) -> bytes:
    """json.dumps without its limit of depth."""
    return json.dumps(document).encode()


def archive(document: dict | bytes, config: dict | None = None, **changed: bytes) -> bytes:
    text = document if isinstance(document, bytes) else to_json(document)
    entries = {
        "archive_format": b"pt2",
        "archive_version": b"0",
        "byteorder": b"little",
        "data/weights/weight_0": bytes(8),
        "data/weights/model_weights_config.json": to_json(config or weights_config()),
        "data/constants/model_constants_config.json": b'{"config": {}}',
        "models/model.json": text,
        "data/sample_inputs/model.pt": b"",
    }
    entries.update(changed)
    return zipped({f"m/{name}": data for name, data in entries.items()})


def changed(change: Callable[[dict], object]) -> bytes:
    document = program()
    change(document)
    return archive(document)


def changed_graph(change: Callable[[dict], object]) -> bytes:
    return changed(lambda document: change(document["graph_module"]["graph"]))


def changed_weight(**fields: object) -> bytes:
    config = weights_config()
    config["config"]["w"].update(fields)
    return archive(program(), config)


def changed_meta(**fields: object) -> bytes:
    return changed_weight(tensor_meta={**tensor(F32, [2]), **fields})


def manifest() -> dict:
    return {"format": "argosy-capture", "version": 1, "schemas": [], "components": [
        {"name": "model", "graph": "graphs/model.json", "companion": "graphs/model.companion.json",
         "inputs": [], "outputs": [{"name": "w"}, {"name": "m"}], "dims": {}}]}  # fmt: skip


def capture(change_manifest: Callable[[dict], object] | None = None, companion: dict | None = None) -> bytes:
    document = manifest()
    if change_manifest:
        change_manifest(document)
    sound = {"storage_count": 2, "locations": [], "storages": {"x": 0, "p_w": 1}, "nodes": [-1], "subgraphs": {}}
    return zipped({"capture.json": to_json(document), "graphs/model.json": to_json(program()),
                   "graphs/model.companion.json": to_json({**sound, **(companion or {})})})  # fmt: skip


def many_bogus(count: int) -> Callable[[dict], None]:
    def change(graph: dict) -> None:
        graph["nodes"] += [neg(f"nobody_{i}", f"v{i}") for i in range(count)]

    return change


def cases() -> list[Case]:
    huge = 1 << 40
    corrupt = [
        ("graph_is_an_array", "expected an object, found an array", archive(b"[]")),
        ("deep_json", "nested", archive(b"[" * 100_000 + b"]" * 100_000)),
        ("no_signature", "graph_module.signature.input_specs: missing",
         changed(lambda d: d["graph_module"].pop("signature"))),
        ("forward_reference", 'nodes[0].inputs[0].arg.as_sym_int.as_name: value "later" is not defined here',
         changed_graph(lambda g: g.update(nodes=[neg("later", "m"), neg("n", "later")]))),
        ("cycle", 'value "m" is not defined here', changed_graph(lambda g: g.update(nodes=[neg("m", "m")]))),
        ("defined_twice", 'value "m" is defined twice',
         changed_graph(lambda g: g["nodes"].append(copy.deepcopy(g["nodes"][0])))),
        ("many_bogus_nodes", 'sym_int_values has no "v0"', changed_graph(many_bogus(100_000))),
        ("shape_overflow", "tensor_values.x.sizes: number of elements overflows",
         changed_graph(lambda g: g["tensor_values"].update(x=tensor(F32, [huge, huge])))),
        ("negative_size", "negative size -3", changed_graph(lambda g: g["tensor_values"].update(x=tensor(F32, [-3])))),
        ("many_dims", "more than 64 dims", changed_graph(lambda g: g["tensor_values"].update(x=tensor(F32, [1] * 5000)))),
        ("strides_missing", "expected 1 strides, one for each size, found 0",
         changed_graph(lambda g: g["tensor_values"].update(x=tensor(F32, [2], [])))),
        ("signature_count", "the graph has 3 inputs, its signature 2",
         changed(lambda d: d["graph_module"]["signature"]["input_specs"].pop())),
        ("mutates_nothing", 'output 0 mutates "nobody", which the graph does not have',
         changed(lambda d: d["graph_module"]["signature"]["output_specs"].__setitem__(
             0, {"buffer_mutation": {"arg": {"name": "p_w"}, "buffer_name": "nobody"}}))),
        ("empty_range", "empty range 9 to 3",
         changed(lambda d: d.update(range_constraints={"s0": {"min_val": 9, "max_val": 3}}))),
        ("two_tags", "expected an object with exactly one member",
         changed_graph(lambda g: g["nodes"][0]["inputs"][0]["arg"].update(as_int=1))),
        ("deep_subgraphs", "sub-graphs nest deeper than 64", changed_graph(
            lambda g: g.update(nested(70), inputs=[value("p_w"), value("x"), sym("n")], nodes=[
                cond(nested(70), "p_w")], sym_int_values=g["sym_int_values"],
                tensor_values={**nested(1)["tensor_values"], "p_w": tensor(F32, [2]), "b": tensor(BOOL, [])}))),
        ("weight_beyond_entry", "needs bytes beyond the 8 of entry", changed_meta(storage_offset=size(1))),
        ("weight_offset_overflow", "storage_offset: offset 9223372036854775807 is negative or overflows",
         changed_meta(storage_offset=size(2**63 - 1))),
        ("weight_overflow", "sizes: number of bytes overflows", changed_meta(sizes=[size(2**62)], strides=[size(1)])),
        ("weight_elsewhere", '"../../etc/passwd" is not a plain file name', changed_weight(path_name="../../etc/passwd")),
        ("weight_missing", 'the archive has no entry "data/weights/weight_9"', changed_weight(path_name="weight_9")),
        ("weight_shape", 'differ on dtype or shape of weight "w"', changed_meta(sizes=[size(1)])),
        ("no_models", "has no graph in", zipped({"m/archive_format": b"pt2", "m/archive_version": b"0"})),
    ]  # fmt: skip
    rows = [Case(f"pt2/{name}.pt2", "corrupt-file", message, write_bytes(data)) for name, message, data in corrupt]
    others = [
        ("schema_9", "unsupported-version", "graph schema 9.1 (written by torch 2.13.0) is not read, only 8.x",
         changed(lambda d: d.update(schema_version={"major": 9, "minor": 1}))),
        ("archive_7", "unsupported-version", 'archive_version is "7"', archive(program(), archive_version=b"7")),
        ("big_endian", "unsupported-version", 'byteorder is "big"', archive(program(), byteorder=b"big")),
        ("pickled", "unsupported-feature", '"w" is stored as a pickle, which is never opened', changed_weight(use_pickle=True)),
        ("strided_view", "unsupported-feature", '"w" is a strided view of its storage', changed_meta(strides=[size(2)])),
        ("sparse", "unsupported-feature", "tensor layout 2 is not strided",
         changed_graph(lambda g: g["tensor_values"]["x"].update(layout=2))),
        ("custom_object", "unsupported-feature", 'the graph uses the custom object "queue"',
         changed(lambda d: d["graph_module"]["signature"]["input_specs"].__setitem__(
             1, {"custom_obj": {"arg": {"name": "x", "class_fqn": "Q"}, "custom_obj_name": "queue"}}))),
        ("unknown_op", "unsupported-op", "no schema is known for op my.op.default",
         changed_graph(lambda g: g["nodes"][0].update(target="torch.ops.my.op.default"))),
    ]  # fmt: skip
    rows += [Case(f"pt2/{name}.pt2", code, message, write_bytes(data)) for name, code, message, data in others]
    captures = [
        ("version_2", "unsupported-version", "capture format 2 is not read, only 1", capture(lambda m: m.update(version=2))),
        ("no_components", "corrupt-file", "components: no component", capture(lambda m: m.update(components=[]))),
        ("no_graph", "corrupt-file", 'the capture has no entry "graphs/other.json"',
         capture(lambda m: m["components"][0].update(graph="graphs/other.json"))),
        ("storage_out_of_range", "corrupt-file", "storage 5 is out of range", capture(companion={"storages": {"x": 5}})),
        ("storage_count", "corrupt-file", "storage_count: out of range", capture(companion={"storage_count": 2**40})),
        ("location_out_of_range", "corrupt-file", "names a location that does not exist", capture(companion={"nodes": [3]})),
        ("output_count", "corrupt-file", "the graph has 2 outputs, this list 0",
         capture(lambda m: m["components"][0].update(outputs=[]))),
        ("bad_schema", "invalid-input", '"nonsense" is not an op schema', capture(lambda m: m.update(schemas=["nonsense"]))),
    ]  # fmt: skip
    return rows + [Case(f"capture/{name}.capture", code, message, write_bytes(data)) for name, code, message, data in captures]
