"""Runs beside hostile code. Writes down what a reference file takes and gives: literals, sizes and element types."""

import ast

import torch

from . import passed

TEXT_LIMIT = 400
"""Number of characters in a problem's text, at most. Chosen; an error shows the text whole."""


class ProblemError(Exception):
    """The reason why the file can't be a reference."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text[:TEXT_LIMIT]


def literal(value: object, what: str) -> str:
    """Return a value as a Python literal that means the same; raise ProblemError if it has none."""
    text = repr(value)
    try:
        same = ast.literal_eval(text) == value
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        same = False
    if not same:
        raise ProblemError("literal", f"{what} gives what can't be written down as plain values: {text[:100]}")
    return text


def argument(name: str, value: object, by_name: bool) -> list[dict[str, object]]:
    """Return an argument, and behind it the tensors that lie in it."""
    if isinstance(value, torch.Tensor):
        return [{"name": name, "keyword": by_name, "literal": None, **tensor(value)}]
    tensors = list(passed.leaves(value, torch.Tensor))
    text = _written(value, f"the argument {name!r}") if tensors else literal(value, f"the argument {name!r}")
    leaves = [
        {"name": f"{name}_{place}", "keyword": False, "within": name, "literal": None, **tensor(one)}
        for place, one in enumerate(tensors)
    ]
    return [{"name": name, "keyword": by_name, "literal": text, "dtype": None, "sizes": None}, *leaves]


def _written(value: object, what: str) -> str:
    """Return a container as its literal, with `...` in the place of each tensor."""
    if isinstance(value, torch.Tensor):
        return "..."
    if type(value) is dict:
        return "{" + ", ".join(f"{literal(key, what)}: {_written(one, what)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        inner = ", ".join(_written(one, what) for one in value)
        return f"[{inner}]" if type(value) is list else f"({inner},)" if value else "()"
    return literal(value, what)


def result(key: str, value: object) -> dict[str, object]:
    """Return a result's place, type and sizes; raise ProblemError if it is no plain tensor."""
    if not isinstance(value, torch.Tensor):
        raise ProblemError("no_tensor", f"the call returns {type(value).__name__}, where tensors are expected")
    if type(value) is not torch.Tensor:
        raise ProblemError("no_tensor", f"the call returns {type(value).__name__}, where plain tensors are expected")
    return {"key": key, **tensor(value)}


def tensor(value: torch.Tensor) -> dict[str, object]:
    """Return a tensor's type and sizes; raise ProblemError if it isn't dense, or not on the processor."""
    if value.layout is not torch.strided or value.is_nested:
        kind = "nested" if value.is_nested else value.layout
        raise ProblemError("no_tensor", f"a tensor is {kind}, where dense ones are expected")
    if value.device.type != "cpu":
        raise ProblemError("device", f"a tensor lies on the device {str(value.device)!r}")
    return {"dtype": str(value.dtype).removeprefix("torch."), "sizes": list(value.shape)}
