"""Runs beside hostile code. Exports a module to a graph of operators, and runs programs that stand for the module.

Foreign code makes every statement here. The graph goes out as JSON, and the host parses it. The outputs of the module
and of each program go out as raw bytes behind a JSON header, and the host compares them.
"""

import json
import mmap
import traceback
from typing import Any

import torch

from . import channel, describe, load, module, results, wire

TEXT_LIMIT = 400
"""Number of characters of a problem's text, at most. Chosen; an error shows the text whole."""
MOST_CONSTANTS = 64
"""Number of values of a tensor that a module makes itself, at most. Larger ones are weights in all but name."""


class GraphError(Exception):
    """The reason why the module has no graph that can be taken apart."""


def main() -> None:
    """Export one module, or run programs in its place, and reply."""
    setup = channel.read_command()
    if not isinstance(setup, channel.Setup):
        return
    torch.set_num_threads(1)  # one order of every sum: equal graphs give equal bits
    torch.set_grad_enabled(False)
    raw: list[bytes] = []
    try:
        said = _exported(setup.body) if setup.body["programs"] is None else _ran(setup.body, raw)
    except GraphError as problem:
        said = {"problem": str(problem)[:TEXT_LIMIT]}
    except BaseException as error:  # noqa: BLE001 (any exception is the file's own)
        traceback.print_exc()
        said = {"problem": f"{type(error).__name__}: {error}".partition("\n")[0][:TEXT_LIMIT]}
        raw = []
    header = json.dumps(said).encode()
    content = len(header).to_bytes(8, "little") + header + b"".join(raw)
    arena_bytes = int(str(setup.body["arena_bytes"]))
    if len(content) > arena_bytes:
        header = b'{"problem": "what it is or gives takes too many bytes"}'
        content = len(header).to_bytes(8, "little") + header
    with mmap.mmap(wire.ARENA, arena_bytes, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) as arena:
        arena[: len(content)] = content
    channel.reply(0, wire.DONE, completed=len(content))


def _made(body: dict[str, object]) -> tuple[Any, torch.nn.Module]:
    loaded = load.load_module(str(body["path"]), "reference")
    if not isinstance(getattr(loaded, "Model", None), type) or not callable(getattr(loaded, "get_inputs", None)):
        raise GraphError("it defines no class Model with get_inputs()")
    init = describe.initial(loaded, loaded.Model)
    return loaded, module.made(loaded.Model, init, int(str(body["seed"])), torch.float32)


def _inputs(loaded: Any, seed: int) -> tuple[Any, ...]:
    torch.manual_seed(seed)
    drawn = loaded.get_inputs()
    return tuple(drawn.values()) if isinstance(drawn, dict) else tuple(drawn)


def _exported(body: dict[str, object]) -> dict[str, object]:
    loaded, made = _made(body)
    given = _inputs(loaded, int(str(body["seed"])))
    program = torch.export.export(made, given, strict=False).run_decompositions({})
    signature = program.graph_signature
    changed = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    if changed:
        raise GraphError(f"it changes {changed[0]} in place: expected a module that changes nothing outside its call")
    state = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    constants = signature.inputs_to_lifted_tensor_constants
    nodes = []
    for node in program.graph.nodes:
        if node.op == "placeholder":
            kind = "state" if node.name in state else "constant" if node.name in constants else "input"
            if kind == "constant":
                nodes.append(_constant(node.name, program.constants[constants[node.name]]))
                continue
            origin = state.get(node.name, node.name)
            value = node.meta["val"]
            tensors = _tensors(value) if isinstance(value, torch.Tensor) else []
            nodes.append(
                {"name": node.name, "op": kind, "origin": origin, "args": [], "kwargs": {}, "tensors": tensors}
            )
        elif node.op == "call_function":
            nodes.append(_call(node))
        elif node.op == "output":
            outputs = [_written(one) for one in node.args[0]]
        else:
            raise GraphError(f"its graph has a node {node.op!r}: expected operators alone")
    return {"nodes": nodes, "outputs": outputs}


def _call(node: Any) -> dict[str, object]:
    target = node.target
    name = "getitem" if getattr(target, "__name__", "") == "getitem" else str(target)
    if name != "getitem" and not isinstance(target, torch._ops.OpOverload):
        raise GraphError(f"its graph calls {name!r}: expected tensor operators alone, and no control flow")
    if name != "getitem" and torch.Tag.nondeterministic_seeded in target.tags and not _draws_nothing(node):
        raise GraphError(f"its graph draws random numbers ({name})")
    return {
        "name": node.name,
        "op": name,
        "origin": "",
        "args": [_written(one) for one in node.args],
        "kwargs": {key: _written(one) for key, one in node.kwargs.items()},
        "tensors": _tensors(node.meta.get("val")),
    }


def _draws_nothing(node: Any) -> bool:
    """Return whether an operator for attention is called without dropout."""
    if "scaled_dot_product_attention" not in str(node.target):
        return False
    dropout = node.kwargs.get("dropout_p", node.args[4] if len(node.args) > 4 else 0.0)
    return isinstance(dropout, float) and dropout == 0.0


def _constant(name: str, value: Any) -> dict[str, object]:
    """Return a small tensor that the module makes itself, as a node of its own."""
    if value.numel() > MOST_CONSTANTS:
        raise GraphError(f"it uses a tensor {name} of {value.numel()} values that is no input and no weight")
    values = ["list", [_written(one) for one in value.detach().reshape(-1).tolist()]]
    sizes = ["list", [_written(one) for one in value.shape]]
    args = [values, sizes, _written(value.dtype)]
    return {"name": name, "op": "literal", "origin": "", "args": args, "kwargs": {}, "tensors": _tensors(value)}


def _tensors(value: Any) -> list[dict[str, object]]:
    listed = value if isinstance(value, tuple | list) else [value]
    for one in listed:
        if isinstance(one, torch.Tensor) and not all(isinstance(size, int) for size in one.shape):
            raise GraphError("a size in its graph depends on data")
    return [
        {"dtype": str(one.dtype).removeprefix("torch."), "sizes": list(one.shape)}
        for one in listed
        if isinstance(one, torch.Tensor)
    ]


def _written(value: Any) -> object:
    """Return an argument as a tagged value: a node, a literal, a list, or one of torch's own constants."""
    if isinstance(value, torch.fx.Node):
        return ["node", value.name]
    if value is None or isinstance(value, bool | int | str):
        return ["value", value]
    if isinstance(value, float):
        return ["float", value.hex()]
    if isinstance(value, tuple | list):
        return ["list", [_written(one) for one in value]]
    if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
        return ["torch", str(value).removeprefix("torch.")]
    if isinstance(value, torch.device) and value.type == "cpu":
        return ["device", "cpu"]
    raise GraphError(f"its graph has an argument of type {type(value).__name__}: expected tensors, numbers and names")


def _ran(body: dict[str, object], raw: list[bytes]) -> dict[str, object]:
    """Run the module and each program on the same inputs; the outputs' bytes are appended to `raw`."""
    loaded, made = _made(body)
    state = dict(made.state_dict(keep_vars=True))
    programs: list[dict[str, Any]] = body["programs"]  # type: ignore[assignment]  # host's JSON
    rows: list[dict[str, object]] = []
    for seed in body["seeds"]:  # type: ignore[attr-defined]  # host's JSON
        whole = _inputs(loaded, seed)
        rows.append({"program": None, "outputs": _outputs(made(*whole), raw)})
        for place, program in enumerate(programs):
            given = _inputs(loaded, seed)
            named = {name: state[name] for name in program["state"]}
            try:
                loaded_program = load.load_module(program["path"], f"program_{place}")
                rows.append({"program": place, "outputs": _outputs(loaded_program.composed(given, named), raw)})
            except (Exception, SystemExit) as error:  # noqa: BLE001 (a wrong program's own)
                rows.append(
                    {"program": place, "outputs": [], "raised": f"{type(error).__name__}: {error}"[:TEXT_LIMIT]}
                )
    return {"rows": rows}


def _outputs(returned: object, raw: list[bytes]) -> list[dict[str, object]]:
    found = []
    for one in results.flatten(returned):
        if not isinstance(one, torch.Tensor):
            raise GraphError("a result is no tensor")
        content = one.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        raw.append(content)
        found.append(
            {"dtype": str(one.dtype).removeprefix("torch."), "sizes": list(one.shape), "bytes": len(content)}
        )
    return found
