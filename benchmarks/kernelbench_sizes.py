"""Prints the size of a KernelBench problem's operands, weights and results: kernelbench_sizes.py FILE MOST_BYTES.

A size that get_inputs() names is halved until they take at most MOST_BYTES: the first one that makes them clearly
smaller. Printed is one JSON document: the bytes, and the constants with their new values. The file runs here, outside
any sandbox, as KernelBench itself runs it; its tensors are fakes that have sizes and no values.
"""

import ast
import json
import sys
from typing import Any

from forge.errors import UnknownName
from forge.pipeline.constants import with_constants

WORTH_IT = 0.8
"""Share of the bytes that a halved size may leave, at most."""


def constants(source: str) -> list[str]:
    """Return the names of the sizes in get_inputs(), the first size of a tensor first."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == "get_inputs":
            used = [one for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
            used.sort(key=lambda one: (one.lineno, one.col_offset))
            return list(dict.fromkeys(one.id for one in used))
    return []


def bytes_of(source: bytes) -> tuple[int, dict[str, Any]]:  # Any: the file's globals
    """Return the bytes that one call takes, and the names that the file defines."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    def size(found: object) -> int:
        if isinstance(found, torch.Tensor):
            return int(found.numel() * found.element_size())
        if isinstance(found, dict):
            return sum(map(size, found.values()))
        return sum(map(size, found)) if isinstance(found, list | tuple) else 0

    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        names: dict[str, Any] = {"__name__": "problem"}
        exec(compile(source, "problem", "exec"), names)
        model, inputs = names["Model"](*names["get_init_inputs"]()), names["get_inputs"]()
        return size([*model.parameters(), *model.buffers()]) + size(inputs) + size(model(*inputs)), names


def can_be_set(source: bytes, name: str) -> bool:
    """Return whether a number can be put in place of the one that the file assigns to a name."""
    try:
        with_constants(source, [f"{name}=1"])
    except UnknownName:
        return False
    return True


def main() -> None:
    """Halve the first size as often as it takes."""
    path, most_bytes = sys.argv[1], int(sys.argv[2])
    with open(path, "rb") as file:
        source = file.read()
    taken, names = bytes_of(source)
    sizes = [name for name in constants(source.decode()) if isinstance(names.get(name), int)]
    values = {name: names[name] for name in sizes if can_be_set(source, name)}
    set_to: dict[str, int] = {}
    while taken > most_bytes:
        for name, value in values.items():
            smaller = {**set_to, name: value // 2}
            found = bytes_of(with_constants(source, [f"{one}={size}" for one, size in smaller.items()]))[0]
            if value > 4 and found <= WORTH_IT * taken:
                taken, set_to, values[name] = found, smaller, value // 2
                break
        else:
            break
    print(json.dumps({"bytes": taken, "constants": [f"{one}={size}" for one, size in set_to.items()]}))


if __name__ == "__main__":
    main()
