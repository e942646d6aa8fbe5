"""Runs beside hostile code. Describes a reference file: its form, its operands, its results.

Foreign code makes every statement here. It is sent as JSON, and the host parses it. Sizes are found on torch's meta
device first, so that a file with too large tensors is refused before they are made. Every file that the code opens,
every connection and every program that it starts is noted.
"""

import inspect
import json
import mmap
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch

from . import channel, load, memory, module, passed, results, state_dict, wire, written
from .written import TEXT_LIMIT, ProblemError

Made = TypeVar("Made")
Function = Callable[..., Any]
"""Foreign code, which may return anything."""
Passed = list[tuple[str, Any, bool]]
"""Arguments in order: the name, the value, and whether it is passed by name."""
Draw = Callable[[], Passed]
NOT_THE_REFERENCE = ("get_inputs", "get_init_inputs")
"""Names of functions that can't be the reference."""
_LIBRARIES = ("/usr/", "/lib", "/proc/", "/sys/", "/dev/", "/etc/ld.so", sys.prefix, sys.base_prefix)


class Watch:
    """Notes what the file does besides computing."""

    def __init__(self, stage: str) -> None:
        # the guest's own folder for temporary files is empty, and libraries probe it
        self._allowed = (*_LIBRARIES, stage, tempfile.gettempdir())
        self.on = False
        self.seen: list[tuple[str, str]] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.on:
            return
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = os.fsdecode(arguments[0])
            # the interpreter reads its own path entries to import from them
            if not path.startswith(self._allowed) and path not in sys.path:
                self.seen.append(("file", f"it opens the file {path!r}"))
        elif event in ("socket.connect", "socket.getaddrinfo"):
            self.seen.append(("network", f"it asks the network for {arguments[-1 if event.endswith('t') else 0]!r}"))
        elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
            self.seen.append(("process", f"it starts the program {arguments[0]!r}"))


def main() -> None:
    """Describe one file and reply."""
    setup = channel.read_command()
    if not isinstance(setup, channel.Setup):
        return
    torch.set_num_threads(int(str(setup.body["threads"])))
    torch.set_grad_enabled(False)
    watch = Watch(str(Path(__file__).parents[1]))
    try:
        said = _described(setup.body, watch)
    except ProblemError as problem:
        said = {"problem": {"code": problem.code, "text": problem.text}}
    watch.on = False
    if watch.seen:
        code, text = watch.seen[0]
        said = {"problem": {"code": code, "text": text[:TEXT_LIMIT]}}
    content = json.dumps(said).encode()
    arena_bytes = int(str(setup.body["arena_bytes"]))
    with mmap.mmap(wire.ARENA, arena_bytes, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) as arena:
        content = content if len(content) <= arena_bytes else b'{"problem": {"code": "large", "text": ""}}'
        arena[: len(content)] = content
    channel.reply(0, wire.DONE, completed=len(content))


def _described(body: dict[str, object], watch: Watch) -> dict[str, object]:
    watch.on = True
    loaded = _step("import", "the file", lambda: load.load_module(str(body["path"]), "reference"))
    form, entry = _entry(loaded, str(body["function"]))
    called: Function = getattr(loaded, entry)
    init = _step("init", "get_init_inputs()", lambda: initial(loaded, called if form == "model" else None))
    draw = _drawing(loaded, body["operands"], called, form)
    positional, named = _step(
        "literal",
        "get_init_inputs()",
        lambda: [written.literal(one, "get_init_inputs()") for one in (list(init[0]), init[1])],
    )
    dtype: torch.dtype = getattr(torch, str(body["dtype"]))
    limit_bytes = int(str(body["limit_bytes"]))
    _require_room(called if form == "model" else None, init, draw, limit_bytes, itemsize=dtype.itemsize)
    seed = int(str(body["seed"]))
    built: torch.nn.Module | None = None
    if form == "model":
        built = _step("init", "Model(...)", lambda: module.made(called, init, seed, dtype))
    torch.manual_seed(seed)
    drawn = _step("inputs", "get_inputs()", draw)
    given = [(name, _cast(one, dtype), by_name) for name, one, by_name in drawn]
    returned = _step("forward", "the call", lambda: _called(built or called, given, dtype))
    found = _step("forward", "the call", lambda: results.flatten_with_places(returned))
    arguments_said = _step(
        "literal", "an argument", lambda: [said for one in drawn for said in written.argument(*one)]
    )
    return {
        "form": form,
        "entry": entry,
        "init": positional,
        "init_named": named if init[1] else "",
        "arguments": arguments_said,
        "states": _step("init", "the state dict", lambda: _states(built)),
        "results": _step("no_tensor", "a result", lambda: _results(found, given, built)),
        "returned": results.nesting(returned),
        "generator": "get_inputs" in vars(loaded),
    }


def _states(built: torch.nn.Module | None) -> list[dict[str, object]]:
    if built is None:
        return []
    parameters = dict(built.named_parameters(remove_duplicate=False))
    return [
        {"names": list(names), **written.tensor(one), "parameter": names[0] in parameters}
        for names, one in state_dict.shared(built)
    ]


def _step(code: str, what: str, do: Callable[[], Made]) -> Made:
    """Run one part of the file; an exception becomes a problem with its own code."""
    try:
        return do()
    except ProblemError:
        raise
    except BaseException as error:  # noqa: BLE001 (any exception is the file's own)
        if memory.ran_out(error):
            raise ProblemError("memory", f"{what} needs more memory than a guest may have") from None
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError):
            text += "; a reference may import what the Python that runs forge has installed"
        raise ProblemError("device" if "cuda" in text.lower() else code, f"{what} raises {text}") from None


def _entry(loaded: ModuleType, function: str) -> tuple[str, str]:
    named = vars(loaded)
    if not function and isinstance(model := named.get("Model"), type):
        if not issubclass(model, torch.nn.Module):
            raise ProblemError("no_entry", "its class Model is no torch.nn.Module: expected one with a forward()")
        return "model", "Model"
    if function:
        if not callable(named.get(function)):
            raise ProblemError("no_entry", f"it defines no function {function!r}")
        return "function", function
    own = [
        name
        for name, one in named.items()
        if inspect.isfunction(one) and one.__module__ == loaded.__name__ and not name.startswith("_")
    ]
    candidates = [name for name in own if name not in NOT_THE_REFERENCE]
    if len(candidates) != 1:
        classes = [name for name, one in named.items() if isinstance(one, type) and one.__module__ == loaded.__name__]
        defined = (
            ", ".join((*candidates, *(f"the class {name}" for name in classes))) or "neither functions nor classes"
        )
        advice = "name one by --function" if candidates else "name its class Model"
        raise ProblemError(
            "no_entry", f"it defines neither a class Model nor exactly one function, but {defined}: {advice}"
        )
    return "function", candidates[0]


def initial(loaded: ModuleType, model: Function | None) -> module.Initial:
    """Return the model's arguments by position and by name.

    A dictionary gives them by name. So does the second of a list and a dictionary, if the model takes them so.
    """
    given = loaded.get_init_inputs() if hasattr(loaded, "get_init_inputs") else []
    if isinstance(given, Mapping):
        return (), dict(given)
    found = tuple(given)
    pair = len(found) == 2 and type(found[0]) in (list, tuple) and type(found[1]) is dict
    if model is not None and pair and (found[1] or not _binds(model, found, {})) and _binds(model, *found):
        return tuple(found[0]), found[1]
    return found, {}


def _binds(model: Function, positional: Sequence[object], named: dict[str, object]) -> bool:
    try:
        inspect.signature(model).bind(*positional, **named)
    except (TypeError, ValueError):
        return False
    return True


def _drawing(loaded: ModuleType, declared: Any, called: Function, form: str) -> Draw:  # Any: the host's list
    draw: Draw | None = getattr(loaded, "get_inputs", None)
    if not declared and not callable(draw):
        raise ProblemError("inputs", "it has no get_inputs(), and no operands were declared")
    function, skip = (getattr(called, "forward"), 1) if form == "model" else (called, 0)  # noqa: B009 (a module's class has one)
    if not callable(draw):
        return lambda: passed.passed_values([_declared(one) for one in declared], function, skip=skip)
    return lambda: _overridden(draw(), declared, function, skip)


def _overridden(given: object, declared: list[dict[str, Any]], function: Function, skip: int) -> Passed:
    """Replace the operands that are declared by values of the declared form and range.

    If every tensor is declared, nothing of get_inputs() is used.
    """
    drawn = passed.passed_values(given, function, skip=skip)
    if declared and len(declared) >= sum(len(list(passed.leaves(one, torch.Tensor))) for _, one, _ in drawn):
        return passed.passed_values([_declared(one) for one in declared], function, skip=skip)
    names = [name for name, _, _ in drawn]
    for one in declared:
        place = names.index(one["name"]) if one["name"] in names else -1
        made = drawn[place][1] if place >= 0 else None
        if not isinstance(made, torch.Tensor):
            raise ProblemError("inputs", f"get_inputs() gives no tensor {one['name']!r}: expected one of {names}")
        if list(made.shape) != one["sizes"] or (made.is_floating_point() or str(made.dtype)) != (
            getattr(torch, one["dtype"]).is_floating_point or f"torch.{one['dtype']}"
        ):
            form_given = f"{str(made.dtype).removeprefix('torch.')}{list(made.shape)}"
            raise ProblemError(
                "inputs",
                f"the operand {one['name']!r}: get_inputs() gives {form_given}, and "
                f"{one['dtype']}{one['sizes']} is declared; declare all operands, or this one as it is",
            )
        drawn[place] = (one["name"], _declared(one), drawn[place][2])
    return drawn


def _declared(one: dict[str, Any]) -> torch.Tensor:  # Any: the host's JSON
    dtype: torch.dtype = getattr(torch, one["dtype"])
    if one["high"] is None:
        return (torch.randn(one["sizes"]) if dtype.is_floating_point else torch.randint(2, one["sizes"])).to(dtype)
    if dtype.is_floating_point:
        return (one["low"] + (one["high"] - one["low"]) * torch.rand(one["sizes"])).to(dtype)
    return torch.randint(one["low"], one["high"] + 1, one["sizes"]).to(dtype)


def _require_room(
    called: Function | None, init: module.Initial, draw: Draw, limit_bytes: int, *, itemsize: int
) -> None:
    try:
        with torch.device("meta"):
            tensors = [one for _, value, _ in draw() for one in passed.leaves(value, torch.Tensor)]
            if called is not None:
                tensors += called(*init[0], **init[1]).state_dict().values()
    except BaseException:  # noqa: BLE001 (not all code runs on meta; its size then shows when it is made)
        return
    needed = sum(one.numel() * (itemsize if one.is_floating_point() else one.element_size()) for one in tensors)
    if needed > limit_bytes:
        raise ProblemError("room", str(needed))


def _called(function: Function, given: Passed, dtype: torch.dtype) -> object:
    positional = [one for _, one, by_name in given if not by_name]
    with module.default_dtype(dtype):
        return function(*positional, **{name: one for name, one, by_name in given if by_name})


def _results(
    found: Sequence[tuple[str, Any]], given: Passed, built: torch.nn.Module | None
) -> list[dict[str, object]]:  # Any: foreign code returned it
    said = [written.result(*one) for one in found]
    operands = [one for _, value, _ in given for one in passed.leaves(value, torch.Tensor)]
    state = built.state_dict().values() if built is not None else ()
    borrowed = results.borrowed([one for _, one in found], [*operands, *state])
    return [{**one, "borrowed": lent} for one, lent in zip(said, borrowed, strict=True)]


def _cast(value: object, dtype: torch.dtype) -> object:
    """Return an argument with its floats, and those of tensors in it, in the task's type."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if type(value) in (list, tuple):
        return type(value)(_cast(one, dtype) for one in value)  # type: ignore[call-arg, attr-defined]  # seen above
    return {key: _cast(one, dtype) for key, one in value.items()} if type(value) is dict else value


if __name__ == "__main__":
    main()
