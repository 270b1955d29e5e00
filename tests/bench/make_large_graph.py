#!/usr/bin/env python3
"""Writes a .pt2 archive of about so many nodes, without torch: what a very deep decoder would look like.

    tests/bench/make_large_graph.py NODES FILE.pt2

Layers of linear, view with symbolic sizes, transpose, attention, split, residuals with numbers and norms; module stacks
and stack traces as torch writes them. Weights have no bytes. Reading it needs a schema file.
"""

from __future__ import annotations

import json
import sys
import zipfile

F32, I64 = 7, 5
HIDDEN, HEADS = 64, 4
BATCH, LENGTH = "Symbol('s72', positive=True, integer=True)", "Symbol('s70', positive=True, integer=True)"


def size(value: int | str) -> dict:
    if isinstance(value, int):
        return {"as_int": value}
    return {"as_expr": {"expr_str": value, "hint": {"as_int": 8}}}


def times(factor: int, expression: str) -> str:
    return f"Mul(Integer({factor}), {expression})"


def meta(dtype: int, sizes: list, strides: list) -> dict:
    return {"dtype": dtype, "sizes": [size(s) for s in sizes], "requires_grad": False,
            "device": {"type": "cpu", "index": None}, "strides": [size(s) for s in strides],
            "storage_offset": {"as_int": 0}, "layout": 7}  # fmt: skip


HIDDEN_META = meta(F32, [BATCH, LENGTH, HIDDEN], [times(HIDDEN, LENGTH), HIDDEN, 1])
SPLIT_META = meta(F32, [BATCH, LENGTH, HEADS, HIDDEN // HEADS], [times(HIDDEN, LENGTH), HIDDEN, HIDDEN // HEADS, 1])
TURNED_META = meta(F32, [BATCH, HEADS, LENGTH, HIDDEN // HEADS], [times(HIDDEN, LENGTH), HIDDEN // HEADS, HIDDEN, 1])
HALF_META = meta(F32, [BATCH, LENGTH, HIDDEN // 2], [times(HIDDEN, LENGTH), HIDDEN, 1])
WEIGHT_META = meta(F32, [HIDDEN, HIDDEN], [HIDDEN, 1])


class Builder:
    def __init__(self) -> None:
        self.nodes: list[dict] = []
        self.tensors: dict[str, dict] = {}
        self.numbers: dict[str, dict] = {}
        self.parameters: list[tuple[str, str]] = []
        self.layer = 0

    def node(self, target: str, inputs: list[tuple[str, dict]], outputs: list[dict], name: str, module: str = "mlp") -> None:
        path = f"model.layers.{self.layer}.{module}"
        trace = "".join(
            f'  File "/opt/venv/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py", line {line}, in forward\n'
            f"    hidden_states = self.step(hidden_states)\n"
            for line in (456, 392, 295, 60 + len(target) % 40)
        ).lstrip()
        stack = (f"L__self__,,transformers.models.llama.modeling_llama.LlamaForCausalLM;"
                 f"L__self__model.layers.{self.layer},model.layers.{self.layer},transformers.models.llama.modeling_llama.LlamaDecoderLayer;"
                 f"L__self__{path},{path},transformers.models.llama.modeling_llama.LlamaMLP")  # fmt: skip
        self.nodes.append({
            "target": target, "inputs": [{"name": name, "arg": arg, "kind": 1} for name, arg in inputs], "outputs": outputs,
            "metadata": {"stack_trace": trace, "nn_module_stack": stack, "torch_fn": f"{name};builtin.{name}"},
            "is_hop_single_tensor_return": None, "name": name})  # fmt: skip

    def tensor(self, target: str, inputs: list[tuple[str, dict]], name: str, kind: dict) -> dict:
        name = f"{name}_{len(self.nodes)}"
        self.tensors[name] = kind
        self.node(target, inputs, [{"as_tensor": {"name": name}}], name)
        return {"as_tensor": {"name": name}}

    def parameter(self) -> dict:
        name = f"p_model_layers_{self.layer}_weight_{len(self.parameters)}"
        self.parameters.append((name, name[2:].replace("_", ".")))
        return {"as_tensor": {"name": name}}

    def sym_size(self, tensor: dict, dim: int, expression: str) -> dict:
        name = f"sym_size_int_{len(self.nodes)}"
        self.numbers[name] = size(expression)
        self.node("torch.ops.aten.sym_size.int", [("self", tensor), ("dim", {"as_int": dim})],
                  [{"as_sym_int": {"as_name": name}}], name)  # fmt: skip
        return {"as_name": name}

    def heads(self, x: dict, batch: dict, length: dict) -> dict:
        sizes = {"as_sym_ints": [batch, length, {"as_int": HEADS}, {"as_int": HIDDEN // HEADS}]}
        x = self.tensor("torch.ops.aten.linear.default", [("input", x), ("weight", self.parameter())], "linear", HIDDEN_META)
        x = self.tensor("torch.ops.aten.view.default", [("self", x), ("size", sizes)], "view", SPLIT_META)
        return self.tensor("torch.ops.aten.transpose.int", [("self", x), ("dim0", {"as_int": 1}), ("dim1", {"as_int": 2})],
                           "transpose", TURNED_META)  # fmt: skip

    def add_layer(self, x: dict) -> dict:
        batch, length = self.sym_size(x, 0, BATCH), self.sym_size(x, 1, LENGTH)
        residual = x
        x = self.tensor("torch.ops.aten.pow.Tensor_Scalar", [("self", x), ("exponent", {"as_int": 2})], "pow", HIDDEN_META)
        x = self.tensor("torch.ops.aten.add.Tensor", [("self", x), ("other", {"as_float": 1e-06})], "add", HIDDEN_META)
        x = self.tensor("torch.ops.aten.rsqrt.default", [("self", x)], "rsqrt", HIDDEN_META)
        x = self.tensor("torch.ops.aten.mul.Tensor", [("self", residual), ("other", x)], "mul", HIDDEN_META)
        q, k, v = (self.heads(x, batch, length) for _ in range(3))
        x = self.tensor("torch.ops.aten.scaled_dot_product_attention.default",
                        [("query", q), ("key", k), ("value", v), ("is_causal", {"as_bool": True}), ("scale", {"as_float": 0.25})],
                        "attention", TURNED_META)  # fmt: skip
        x = self.tensor("torch.ops.aten.transpose.int", [("self", x), ("dim0", {"as_int": 1}), ("dim1", {"as_int": 2})],
                        "transpose", SPLIT_META)  # fmt: skip
        x = self.tensor("torch.ops.aten.reshape.default",
                        [("self", x), ("shape", {"as_sym_ints": [batch, length, {"as_int": -1}]})], "reshape", HIDDEN_META)
        x = self.tensor("torch.ops.aten.add.Tensor", [("self", residual), ("other", x)], "add", HIDDEN_META)
        number = len(self.nodes)
        parts = [f"getitem_{number}_0", f"getitem_{number}_1"]
        self.tensors.update({part: HALF_META for part in parts})
        self.node("torch.ops.aten.split.Tensor", [("self", x), ("split_size", {"as_int": HIDDEN // 2}), ("dim", {"as_int": -1})],
                  [{"as_tensors": [{"name": part} for part in parts]}], f"split_{number}")  # fmt: skip
        x = self.tensor("torch.ops.aten.cat.default", [("tensors", {"as_tensors": [{"name": part} for part in reversed(parts)]}),
                                                       ("dim", {"as_int": -1})], "cat", HIDDEN_META)  # fmt: skip
        self.layer += 1
        return x


def write(nodes: int, path: str) -> None:
    builder = Builder()
    x = {"as_tensor": {"name": "x"}}
    while len(builder.nodes) < nodes:
        x = builder.add_layer(x)
    # As torch has it: inputs first, then results in order.
    tensors = {**{name: WEIGHT_META for name, _ in builder.parameters}, "x": HIDDEN_META, **builder.tensors}
    inputs = [{"as_tensor": {"name": name}} for name, _ in builder.parameters] + [{"as_tensor": {"name": "x"}}]
    specs = [{"parameter": {"arg": {"name": name}, "parameter_name": weight}} for name, weight in builder.parameters]
    specs.append({"user_input": {"arg": {"as_tensor": {"name": "x"}}}})
    leaf = '{"type": null, "context": null, "children_spec": []}'
    one = f'{{"type": "builtins.tuple", "context": "null", "children_spec": [{leaf}]}}'
    none = '{"type": "builtins.dict", "context": "[]", "children_spec": []}'
    program = {
        "graph_module": {
            "graph": {"inputs": inputs, "outputs": [x], "nodes": builder.nodes, "tensor_values": tensors,
                      "sym_int_values": builder.numbers, "sym_bool_values": {}, "is_single_tensor_return": False,
                      "custom_obj_values": {}, "sym_float_values": {}},
            "signature": {"input_specs": specs, "output_specs": [{"user_output": {"arg": x}}]},
            "module_call_graph": [{"fqn": "", "signature": {
                "inputs": [], "outputs": [], "forward_arg_names": ["x"], "out_spec": f"[1, {leaf}]",
                "in_spec": f'[1, {{"type": "builtins.tuple", "context": "null", "children_spec": [{one}, {none}]}}]'}}],
            "metadata": {}, "treespec_namedtuple_fields": {},
        },
        "opset_version": {"aten": 10},
        "range_constraints": {"s72": {"min_val": 2, "max_val": None}, "s70": {"min_val": 2, "max_val": 2048}},
        "schema_version": {"major": 8, "minor": 20},
        "verifiers": ["TRAINING"], "torch_version": "2.13.0", "guards_code": [],
    }  # fmt: skip
    config = {weight: {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": WEIGHT_META}
              for _, weight in builder.parameters}  # fmt: skip
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {
            "archive_format": "pt2", "archive_version": "0", "byteorder": "little", "data/weights/weight_0": "",
            "data/weights/model_weights_config.json": json.dumps({"config": config}),
            "data/constants/model_constants_config.json": '{"config": {}}',
            "models/model.json": json.dumps(program), "data/sample_inputs/model.pt": "", ".data/version": "6\n",
        }.items():  # fmt: skip
            archive.writestr(zipfile.ZipInfo(f"large/{name}", date_time=(1980, 1, 1, 0, 0, 0)), data)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(int(sys.argv[1]), sys.argv[2])
