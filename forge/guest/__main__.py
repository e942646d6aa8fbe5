"""Runs beside hostile code. The guest's loop: loads the named functions, lays out the arena, runs on command."""

import gc
import importlib
import json
import mmap
import sys
import traceback

from . import channel, load, memory, wire

_CANDIDATE = "kernel.py"
"""Name of a candidate's file. A user's reference file may set what it likes."""


def main() -> None:
    """Serve commands until the host closes the channel."""
    first = channel.read_command()
    if not isinstance(first, channel.Setup):
        return
    _start(first.body)
    channel.reply(0, wire.DONE)  # no line of a candidate has run until here
    second = channel.read_command()
    if not isinstance(second, channel.Setup):
        return
    language = importlib.import_module(".language", __package__)
    language.prepare(second.body)
    functions = _load_all(second.body)
    if functions is not None:
        channel.reply(0, wire.DONE)
        _serve(functions, int(str(second.body["arena_bytes"])), str(first.body["device"]))


def _start(body: dict[str, object]) -> None:
    """Import what each guest needs, and set it up; if that fails, the machine is the reason."""
    import numpy as np
    import torch

    np.random.seed()  # Python's generator is seeded anew in a fork, numpy's isn't
    importlib.import_module(".surroundings", __package__)  # it reads what is so before a candidate's first line
    threads = int(str(body["threads"]))
    if torch.get_num_threads() != threads:  # setting it also starts a pool of threads, for which each stop waits
        torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    if body["device"] == "cuda":
        torch.cuda.init()


def _load_all(body: dict[str, object]) -> list[load.Function] | None:
    import torch

    from . import state_dict, surroundings

    listed: list[dict[str, str]] = body["functions"]  # type: ignore[assignment]  # host's JSON
    judged = all(f["wrap"] == "none" or f["path"].endswith(_CANDIDATE) for f in listed)
    torch.set_grad_enabled(judged)  # as in a program that imports a kernel
    before = surroundings.look(())
    try:
        loaded = [load.load_function(f["path"], f["module"], f["entry_point"], wrap=f["wrap"]) for f in listed]
        bound = [one for f, one in zip(listed, loaded, strict=True) if f["wrap"] != "none"]  # the others are foreign
        made = any(getattr(one, "holds_module", False) for one in bound)  # which draws its weights
        status = before.status_after((), generators=not made) if judged else wire.DONE
        if status == wire.DONE:
            return loaded
        channel.reply(0, status)
    except load.NoEntryPointError as missing:
        print(missing, file=sys.stderr)  # noqa: T201 (the log is where an author looks)
        channel.reply(0, wire.NO_ENTRY_POINT)
    except state_dict.OtherStateError as other:
        print(other, file=sys.stderr)  # noqa: T201 (the log is where an author looks)
        channel.reply(0, wire.OTHER_STATE)
    except BaseException as error:  # noqa: BLE001 (whatever an import raises, it is the candidate's)
        traceback.print_exc()
        channel.reply(0, wire.OUT_OF_MEMORY if memory.ran_out(error) else wire.LOAD_FAILED)
    finally:
        torch.set_grad_enabled(False)
    return None


def _serve(functions: list[load.Function], arena_bytes: int, device: str) -> None:
    from . import run, surroundings

    arena = run.open_arena(arena_bytes)
    served: _Served | None = None
    gc.disable()
    while (command := channel.read_command()) is not None:
        if not (isinstance(command, channel.Go) or (isinstance(command, channel.Setup) and "sets" in command.body)):
            surroundings.forget()
        if isinstance(command, channel.Setup):
            if "sets" in command.body:
                served = None  # frees the device's memory first
                served = _laid_out(arena, command.body, device)
            else:
                _answer(functions, arena, served, command.body)
        elif served is not None:
            _call(functions, served, command)
        else:
            channel.reply(command.call_id, wire.NO_ROOM)
        gc.collect(0)


def _answer(
    functions: list[load.Function], arena: mmap.mmap, served: "_Served | None", body: dict[str, object]
) -> None:
    """Answer a command that lays out nothing and whose calls, if any, aren't timed."""
    if "choose" in body:
        _choose(arena, body)
    elif served is None:
        channel.reply(0, wire.NO_ROOM)
    elif "capture" in body:
        _capture(functions, served, body)
    elif "count_operators" in body:
        _count_operators(functions, served, body)
    elif "room" in body:
        channel.reply(0, wire.DONE)
    elif "surroundings" in body:
        channel.reply(0, served.surroundings(str(body["surroundings"])))


class _Served:
    """A layout, its clock after the first timing command, and what a chain of calls must leave unchanged."""

    def __init__(self, arena: object, layout: object) -> None:
        self.arena = arena
        self.layout = layout
        self._clock: object = None
        self._before: object = None

    def surroundings(self, step: str) -> int:
        """Look at the surroundings before a chain of calls, or compare them after it; return the status."""
        from . import chain

        if step == "look":
            if self._before is None:  # the first chain of this layout
                chain.map_pages(self.arena, self.layout)  # type: ignore[arg-type]  # imported late, see _serve
            self._before = chain.look_around(self.layout)  # type: ignore[arg-type]  # imported late, see _serve
            return wire.DONE
        return chain.status_after(self._before, self.layout)  # type: ignore[arg-type]  # imported late, see _serve

    def time(self, function: load.Function, command: channel.Time) -> None:
        from . import clock

        if self._clock is None:
            self._clock = clock.Clock(self.layout)  # type: ignore[arg-type]  # imported late, see _serve
        self._clock.time(function, command)  # type: ignore[attr-defined]  # imported late, see _serve


def _laid_out(arena: mmap.mmap, body: dict[str, object], device: str) -> _Served | None:
    """Lay out operands; other guests of the device may have left too little of its memory.

    The host sends the next command with this one, and is told of the room by the reply to that.
    """
    from . import run

    try:
        memory.give_unused_memory_back(device)
        return _Served(arena, run.lay_out(arena, body, device))
    except BaseException as error:
        if not memory.ran_out(error):
            raise
        return None


def _capture(functions: list[load.Function], served: _Served, body: dict[str, object]) -> None:
    from pathlib import Path

    from . import capture, run

    try:
        inputs = run.on_device(served.layout, 0)  # type: ignore[arg-type]  # imported late, see _serve
        scalars: list[float] = body["scalars"]  # type: ignore[assignment]  # host's JSON
        directory = Path(str(body["candidate_directory"]))
        files = capture.capture(functions[0], inputs, tuple(scalars), directory)
        channel.reply(0, wire.DONE, completed=capture.hand_over(served.arena, files))  # type: ignore[arg-type]  # imported late, see _serve
    except BaseException as error:  # noqa: BLE001 (the candidate's code ran again: whatever it raises is its own)
        traceback.print_exc()
        channel.reply(0, wire.OUT_OF_MEMORY if memory.ran_out(error) else wire.RAISED)


def _choose(arena: object, body: dict[str, object]) -> None:
    """Say which configuration autotuned kernels use from now on; hand over those of the calls so far, if asked."""
    language = importlib.import_module(".language", __package__)
    said = {
        "most": language.choose(int(str(body["choose"])), str(body["way"])),
        "configurations": language.described(),
    }
    text = json.dumps(said).encode() if body["described"] else b""
    arena[: len(text)] = text  # type: ignore[index]  # imported late, see _serve
    channel.reply(0, wire.DONE, completed=len(text))


def _count_operators(functions: list[load.Function], served: _Served, body: dict[str, object]) -> None:
    from . import operators, run

    try:
        inputs = run.on_device(served.layout, 0)  # type: ignore[arg-type]  # imported late, see _serve
        scalars: list[float] = body["scalars"]  # type: ignore[assignment]  # host's JSON
        table = operators.count(functions[0], inputs, scalars, int(str(body["count_operators"])))
        served.arena[: len(table)] = table  # type: ignore[index]  # imported late, see _serve
        channel.reply(0, wire.DONE, completed=len(table))
    except BaseException:  # noqa: BLE001 (the candidate's code ran again: whatever it raises is its own)
        traceback.print_exc()
        channel.reply(0, wire.RAISED)


def _call(
    functions: list[load.Function], served: _Served, command: channel.Go | channel.Chain | channel.Time
) -> None:
    from . import chain, run

    function = None if command.function == wire.IDLE else functions[command.function]
    try:
        if isinstance(command, channel.Chain):
            chain.chain(function, served.layout, command)  # type: ignore[arg-type]  # imported late, see _serve
        elif function is not None and isinstance(command, channel.Time):
            served.time(function, command)
        elif function is not None and isinstance(command, channel.Go):
            run.run(function, served.layout, command)  # type: ignore[arg-type]  # imported late, see _serve
    except BaseException as error:  # noqa: BLE001 (whatever a candidate raises is an answer, not our fault)
        exhausted = memory.ran_out(error)
        if not exhausted:  # a traceback takes memory too
            traceback.print_exc()
        channel.reply(command.call_id, wire.OUT_OF_MEMORY if exhausted else _status(error))


def _status(error: BaseException) -> int:
    """Return the status of an exception: of results, of arguments, of a language, one that callers catch, or another.

    A candidate that raises the first kinds itself is refused for it.
    """
    from .device_functions import NeedsGpuError
    from .module import ChangedTypeError
    from .passed import ChangedContainerError
    from .results import OtherFormError, OtherKeysError

    if isinstance(error, OtherFormError | OtherKeysError):
        return wire.OTHER_NESTING
    if isinstance(error, ChangedContainerError):
        return wire.CHANGED_AN_INPUT
    if isinstance(error, ChangedTypeError):
        return wire.CHANGED_A_SETTING

    cause: BaseException | None = error
    while cause is not None:  # the interpreter wraps what a kernel raises
        if isinstance(cause, NeedsGpuError):
            return wire.NEEDS_GPU
        cause = cause.__cause__
    language = importlib.import_module(".language", __package__)
    kinds = {"NoConfigurationError": wire.NO_CONFIGURATION, "PrunedByDataError": wire.PRUNED_BY_DATA}
    own = ((getattr(language, name, None), status) for name, status in kinds.items())
    other = wire.RAISED if isinstance(error, Exception) else wire.RAISED_TO_END
    return next((status for kind, status in own if kind is not None and isinstance(error, kind)), other)


if __name__ == "__main__":
    main()
