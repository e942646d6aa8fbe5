"""Runs beside hostile code. Makes a PyTorch module callable by the harness: operands in, tensors out.

The host's contract.json lies beside the file. It says which arguments are tensors, what the others are, and which
operands are the module's own tensors. These are put under their state dict names before each call, so that weights
are operands like any other. The same lines serve the reference, its baselines and the candidate.
"""

import ast
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch

from . import passed, reach, results
from .state_dict import Places, States, shared

Function = Callable[..., object]
Initial = tuple[tuple[object, ...], Mapping[str, object]]
"""Arguments of a module's constructor, by position and by name."""
CONTRACT_FILE = "contract.json"
MODULE, COMPILED, WIDE, INPUTS, STATE = "module", "module_compile", "module_fp64", "module_inputs", "module_state"
"""Values of `wrap`: the module unchanged, compiled by torch, in fp64, what get_inputs draws under a seed, and the
state dict under a seed."""
TUNED = "_max_autotune"
"""End of `wrap` if torch.compile tunes as long as it likes; without CUDA graphs, since the host times its own."""


class Contract(NamedTuple):
    """The part of the host's contract that a guest needs."""

    init: Initial
    seed: int
    dtype: torch.dtype
    literals: passed.Literals
    """Arguments in order: whether each is a tensor, and its value if not, with `...` for each tensor in it."""
    names: tuple[str, ...]
    """Names of the arguments."""
    keywords: frozenset[str]
    """Names of the arguments that are passed by name."""
    keys: tuple[str, ...]
    """Places of the results in the returned dictionary; none if no dictionary is returned."""
    returned: str
    """Form of what is returned, as `results.nesting` writes it; empty: the contract is older than that."""
    borrowed: frozenset[int]
    """Places of the results that are an operand's or the module's memory in the reference, and need a copy."""
    states: States

    @property
    def tensors(self) -> int:
        """Number of tensors among the arguments and in them."""
        return sum(is_tensor or len(list(passed.leaves(value, ...))) for is_tensor, value in self.literals)


def read_contract(directory: Path) -> Contract:
    """Read the contract that the host staged."""
    said = json.loads((directory / CONTRACT_FILE).read_text())
    return Contract(
        init=(tuple(ast.literal_eval(said["init"])), ast.literal_eval(said["init_named"] or "{}")),
        seed=said["seed"],
        dtype=getattr(torch, said["dtype"]),
        literals=tuple(
            (one["literal"] is None, None if one["literal"] is None else ast.literal_eval(one["literal"]))
            for one in said["arguments"]
        ),
        names=tuple(one["name"] for one in said["arguments"]),
        keywords=frozenset(one["name"] for one in said["arguments"] if one["keyword"]),
        keys=tuple(said["keys"]),
        returned=said["returned"],
        borrowed=frozenset(said["borrowed"]),
        states=tuple((tuple(one["names"]), tuple(one["sizes"]), one["parameter"]) for one in said["states"]),
    )


def wrapped(loaded: Mapping[str, object], called: object, directory: Path, *, wrap: str) -> Function:
    """Return the function that the harness calls.

    `called` is a module's class or a function; `loaded` is all that its file defines.
    """
    contract = read_contract(directory)
    if wrap == INPUTS:
        return lambda seed, pattern: _inputs(loaded, contract, seed, pattern)
    if wrap == STATE:
        return lambda seed: _state(called, contract, seed)
    dtype = torch.float64 if wrap == WIDE else contract.dtype
    if not (isinstance(called, type) and issubclass(called, torch.nn.Module)):
        function: Function = compiled(called, wrap) if wrap.startswith(COMPILED) else called  # type: ignore[arg-type, assignment]  # load_function saw that it is callable
        return Bound(function, None, contract, dtype)
    module = made(called, contract.init, contract.seed, dtype)
    function = compiled(module, wrap) if wrap.startswith(COMPILED) else module
    return Bound(function, Places(module, contract.states), contract, dtype)


def compiled(function: Function, wrap: str) -> Function:
    """Return a function compiled by torch for its exact sizes, in the mode that `wrap` says."""
    mode = "max-autotune-no-cudagraphs" if wrap.endswith(TUNED) else None
    found: Function = torch.compile(function, dynamic=False, mode=mode)
    return found


def made(called: object, init: Initial, seed: int, dtype: torch.dtype) -> torch.nn.Module:
    """Make the module under a seed and in an element type; it stays in the mode that its file sets."""
    torch.manual_seed(seed)
    module: torch.nn.Module = called(*init[0], **init[1])  # type: ignore[operator]  # a class, see `wrapped`
    module = module.to(dtype)
    for part in module.modules():
        for name, value in list(vars(part).items()):
            if type(value) is torch.Tensor and value.is_floating_point():
                setattr(part, name, value.to(dtype))
    return module


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Set torch's default type, so that tensors made during a call have the type of the computation."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class ChangedTypeError(RuntimeError):
    """A call left another default type of torch's than it found."""


class Bound:
    """A function of operands: the arguments' tensors come first, then those of the state dict."""

    def __init__(self, function: Function, places: Places | None, contract: Contract, dtype: torch.dtype) -> None:
        self._function = function
        self._places = places
        self._contract = contract
        self._dtype = dtype
        self._moved = False

    @property
    def holds_module(self) -> bool:
        """Whether a module was made, which draws its weights."""
        return self._places is not None

    def __call__(self, *operands: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Call once; return flat results with the memory that the call gave them, so that shared memory shows."""
        cast = tuple(one.to(self._dtype) if one.is_floating_point() else one for one in operands)
        contract = self._contract
        states, arguments = cast[contract.tensors :], passed.arguments(contract.literals, cast)
        named = list(zip(contract.names, arguments, strict=True))
        positional = [one for name, one in named if name not in contract.keywords]
        keywords = {name: one for name, one in named if name in contract.keywords}
        with default_dtype(self._dtype):
            if self._places is None:
                returned = self._function(*positional, *states, **keywords)
            else:
                if not self._moved and operands:
                    self._places.move(operands[0].device)
                    self._moved = True
                self._places.put(states)
                returned = self._function(*positional, **keywords)
                cast += self._places.tensors()
            if torch.get_default_dtype() != self._dtype:  # which would be put back below, before anything looks
                raise ChangedTypeError("left behind changed: torch's default type")
            passed.require_unchanged(contract.names, arguments, contract.literals, cast)
            return results.read_results(returned, contract.keys, contract.returned, contract.borrowed, cast)


def _inputs(
    loaded: Mapping[str, object], contract: Contract, seed: torch.Tensor, pattern: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    with _seeded(int(seed)), reach.Reaching(reach.PATTERNS[int(pattern)]):
        drawn = loaded["get_inputs"]()  # type: ignore[operator]  # the description says that it is a function
    values = [drawn[name] for name in contract.names] if isinstance(drawn, Mapping) else drawn
    return tuple(
        (one.to(contract.dtype) if one.is_floating_point() else one).contiguous()
        for argument, (is_tensor, _) in zip(values, contract.literals, strict=True)
        for one in ((argument,) if is_tensor else passed.leaves(argument, torch.Tensor))
    )


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed every generator that a file usually draws from, and restore them afterwards."""
    numpy = sys.modules.get("numpy")
    before = random.getstate()
    numpy_before = numpy.random.get_state() if numpy is not None else None
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            random.seed(seed)
            if numpy is not None:
                numpy.random.seed(seed)
            yield
    finally:
        random.setstate(before)
        if numpy is not None and numpy_before is not None:
            numpy.random.set_state(numpy_before)


def _state(called: object, contract: Contract, seed: torch.Tensor) -> tuple[torch.Tensor, ...]:
    with torch.random.fork_rng(devices=[]):
        module = made(called, contract.init, int(seed), contract.dtype)
    return tuple(tensor.contiguous() for _, tensor in shared(module))
