"""Runs beside hostile code. Runs a model with its own functions and with adopted kernels, one window at a time.

The host's clock times the windows. What this process says about the model's answers is a claim. The host has bound a
folder with `forge.adopt` and the published registry. `forge.adopt` is imported by name, since no code of the guest
depends on the rest of Forge.
"""

import importlib
import json
import mmap
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from . import channel, load, wire

OWN, ADOPTED, CONTROL = 0, 1, 2
"""Sides: the model's own functions, adopted kernels, and the own functions once more."""
SHARE_STEPS = 5
"""Number of steps in which the share of each function is measured. Chosen; each costs a step with events around every
call."""
WARM_UP_STEPS = 3
"""Number of steps before anything is timed: the first ones load and compile."""
SPREAD = 2.0**-16
"""Difference of two steps of one model in fp32, over the largest logit, at most. Chosen: 128 units in the last place.
Some products on a GPU add in another order at each call."""
TEXT_LIMIT = 800
"""Number of characters in a problem's text, at most. Chosen; an error shows the text whole."""
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
Function = Callable[..., Any]
"""Foreign code, which may return anything."""


class ModelError(Exception):
    """The model's file doesn't do what is asked of it."""


class _Side:
    """One side's model. The modes share its memory, and what was compiled from it."""

    def __init__(self, runner: "ModelRunner", model: Function) -> None:
        self._model, self._step = model, runner.start(model)
        self._compiled: Function | None = None

    def stepper(self, mode: str) -> Callable[[], Any]:
        """Return a function that makes one step in a mode."""
        called = self._model if mode == "eager" else self._by_compiler()

        def step() -> Any:
            return self._step(called)

        for _ in range(WARM_UP_STEPS):
            step()
        if mode != "graphs":
            return step
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        replay: Callable[[], Any] = graph.replay
        return replay

    def _by_compiler(self) -> Function:
        if self._compiled is None:
            self._compiled = torch.compile(self._model)
        return self._compiled


class ModelRunner:
    """A model's file, and its two sides with a control."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._file: ModuleType = load.load_module(str(body["path"]), "measured_model")
        self._workload: dict[str, Any] = body["workload"]
        self._modes = [str(mode) for mode in body["modes"]]
        self._device = str(body["device"])
        self._seed = int(body["seed"])
        self._steps = int(body["greedy_steps"])
        self.config = self._plain_config()
        self._own: dict[str, Function] = {}
        self._model(self.config, self._collect)
        sys.path.insert(0, str(body["library"]))
        self._ops = self._adopted(str(body["registry"]))
        built = [int(side) for side in body["built"]]
        functions = {OWN: self._keep, ADOPTED: self._replace, CONTROL: self._keep}
        sides = {side: _Side(self, self._model(self.config, functions[side])) for side in built}
        self._steppers = {(mode, side): sides[side].stepper(mode) for mode in self._modes for side in built}

    def _plain_config(self) -> dict[str, Any]:
        config = getattr(self._file, "CONFIG", None)
        if not isinstance(config, dict) or config.get("dtype") not in DTYPES:
            raise ModelError(f"CONFIG is {config!r:.100}: expected a dictionary with a dtype of {', '.join(DTYPES)}")
        again: dict[str, Any] = json.loads(json.dumps(config))
        return again

    def _model(self, config: dict[str, Any], op: Callable[[str, Function], Function]) -> Function:
        torch.manual_seed(self._seed)
        built: Function = self._file.build(config, self._seed, op)
        if not callable(built):
            raise ModelError("build() returned no function: expected a model to call with tokens, state and position")
        return built.to(self._device) if isinstance(built, torch.nn.Module) else built

    def _start(self, model: Function, config: dict[str, Any]) -> tuple[Any, Any]:
        torch.manual_seed(self._seed + 1)
        tokens, state = self._file.start(model, config, self._workload, self._seed)
        return tokens.to(self._device), state

    def _collect(self, name: str, own: Function) -> Function:
        self._own.setdefault(name, own)
        return own

    def _keep(self, _: str, own: Function) -> Function:
        return own

    def _replace(self, name: str, own: Function) -> Function:
        if name not in self._ops.operations:
            return own
        found: Function = self._ops.function(name, own)
        return found

    # Any: the adoption, which this package doesn't know
    def _adopted(self, registry: str) -> Any:
        adopt = importlib.import_module("forge.adopt").adopt
        known = importlib.import_module("forge.lookup").Registry.open(registry).operations
        names = [name for name in self._own if name in known]
        if not names:
            raise ModelError(
                f"the model names the operations {sorted(self._own)}, the registry describes {sorted(known)}: "
                "expected one in common"
            )
        fallback = {name: self._own[name] for name in names}
        return adopt(registry, names, trust="promoted", fallback=fallback, refresh_s=0)

    def start(self, model: Function) -> Callable[[Function], Any]:
        """Return a function that makes one step by a model, or by what was compiled from it, at the same position."""
        tokens, state = self._start(model, self.config)
        position = int(self._workload["context"])
        return lambda called: called(tokens, state, position)

    def window(self, mode: str, side: int, steps: int) -> None:
        """Make steps of one side in one mode, and wait until the device is done."""
        step = self._steppers[mode, side]
        for _ in range(steps):
            step()
        if self._device != "cpu":
            torch.cuda.synchronize()

    def facts(self) -> dict[str, Any]:
        """Return the errors of both sides, their greedy tokens, what the adopted side took, and the shares."""
        config32 = {**self.config, "dtype": "fp32"}
        own, adopted = self._model(self.config, self._keep), self._model(self.config, self._replace)
        in_fp32 = self._model(config32, self._keep)
        wanted, wanted_again = self._logits(in_fp32, config32), self._logits(in_fp32, config32)
        again = self._logits(own, self.config)
        first, second = self._logits(own, self.config), self._logits(adopted, self.config)
        own_error = _error(first, wanted)
        _require_equal_steps("the model in fp32", _error(wanted_again, wanted), SPREAD)
        _require_equal_steps("the model", _error(again, first), max(SPREAD, 2 * own_error))
        tokens = [self._greedy(one) for one in (own, adopted)]
        equal = next((place for place, pair in enumerate(zip(*tokens, strict=True)) if pair[0] != pair[1]), None)
        report = self._ops.report().document
        return {
            "config": self.config,
            "own_error": own_error,
            "adopted_error": _error(second, wanted),
            "equal_tokens": self._steps if equal is None else equal,
            "generation": report["generation"],
            "lines": report["lines"],
            "shares": self._shares(),
        }

    def _logits(self, model: Function, config: dict[str, Any]) -> torch.Tensor:
        tokens, state = self._start(model, config)
        logits: torch.Tensor = model(tokens, state, int(self._workload["context"])).float()
        return logits

    def _greedy(self, model: Function) -> list[list[int]]:
        tokens, state = self._start(model, self.config)
        position, chosen = int(self._workload["context"]), []
        for _ in range(self._steps):
            logits = model(tokens, state, position)
            position += tokens.shape[1]
            tokens = logits[:, -1].argmax(-1, keepdim=True)
            chosen.append(tokens.flatten().tolist())
        return chosen

    def _shares(self) -> list[dict[str, Any]]:
        """Return each own function's share of a step's time, in eager mode, by the kernel that would replace it."""
        spent: dict[tuple[str, str | None], list[float]] = {}
        kernels: dict[object, str | None] = {}

        def timed(name: str, own: Function) -> Function:
            def call(*arguments: Any) -> Any:
                kind = (name, *(tuple(one.shape) for one in arguments if isinstance(one, torch.Tensor)))
                if kind not in kernels:
                    kernels[kind] = self._kernel(name, arguments)
                begun = self._now()
                answer = own(*arguments)
                spent.setdefault((name, kernels[kind]), []).append(self._now() - begun)
                return answer

            return call

        model = self._model(self.config, timed)
        tokens, state = self._start(model, self.config)
        model(tokens, state, int(self._workload["context"]))
        spent.clear()
        begun = self._now()
        for _ in range(SHARE_STEPS):
            model(tokens, state, int(self._workload["context"]))
        total = self._now() - begun
        return [
            {
                "op": op,
                "kernel_id": kernel_id,
                "share": min(1.0, sum(times) / total),
                "calls": len(times) / SHARE_STEPS,
            }
            for (op, kernel_id), times in spent.items()
        ]

    def _kernel(self, name: str, arguments: Sequence[Any]) -> str | None:
        """Return the kernel that a call takes; None for the fallback."""
        if name not in self._ops.operations:
            return None
        found: str | None = self._ops.explain(name, *arguments)["kernel_id"]
        return found

    def _now(self) -> float:
        if self._device != "cpu":
            torch.cuda.synchronize()
        return time.perf_counter()


def _error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found - wanted).abs().max() / wanted.abs().max())


def _require_equal_steps(whose: str, spread: float, most: float) -> None:
    if not spread <= most:
        raise ModelError(
            f"two steps of {whose} differ by {spread:.2g} of the largest logit: "
            f"expected at most {most:.2g}, which rounding in another order explains"
        )


def main() -> None:
    """Answer commands until the host closes the channel."""
    runner: ModelRunner | None = None
    arena: mmap.mmap | None = None
    while isinstance(command := channel.read_command(), channel.Setup):
        body: dict[str, Any] = command.body
        if arena is None:
            torch.set_num_threads(int(body["threads"]))
            arena = mmap.mmap(wire.ARENA, int(body["arena_bytes"]), mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        said: dict[str, Any] = {}
        try:
            with torch.no_grad():
                if runner is None:
                    runner = ModelRunner(body)
                elif body["do"] == "window":
                    runner.window(str(body["mode"]), int(body["side"]), int(body["steps"]))
                else:
                    said = runner.facts()
        except MemoryError:
            said = {"problem": "it ran out of memory"}
        except ModelError as error:
            said = {"problem": str(error)[:TEXT_LIMIT]}
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            said = {"problem": f"{type(error).__name__} at {where}: {error}"[:TEXT_LIMIT]}
        content = json.dumps(said).encode()
        if len(content) > len(arena):
            content = b'{"problem": "it says too much"}'
        arena[: len(content)] = content
        channel.reply(0, wire.DONE, completed=len(content))
