"""Runs beside hostile code. The guest's loop: load what is named, lay out the arena, run on command."""

import gc
import importlib
import sys
import traceback

from . import channel, load, wire


def main() -> None:
    """Serve commands until the host closes the channel."""
    first = channel.read_command()
    if not isinstance(first, channel.Setup):
        return
    language = importlib.import_module(".language", __package__)
    language.prepare(first.body)
    functions = _load_all(first.body)
    if functions is not None:
        channel.reply(0, wire.DONE)
        _serve(functions, int(str(first.body["arena_bytes"])), str(first.body["device"]))


def _load_all(body: dict[str, object]) -> list[load.Function] | None:
    import torch

    torch.set_num_threads(int(str(body["threads"])))
    torch.set_grad_enabled(False)
    listed: list[dict[str, str]] = body["functions"]  # type: ignore[assignment]  # host's JSON
    try:
        return [load.load_function(f["path"], f["module"], f["entry_point"], wrap=f["wrap"]) for f in listed]
    except load.NoEntryPointError as missing:
        print(missing, file=sys.stderr)  # noqa: T201 (the log is where an author looks)
        channel.reply(0, wire.NO_ENTRY_POINT)
    except BaseException:  # noqa: BLE001 (whatever an import raises, it is the candidate's)
        traceback.print_exc()
        channel.reply(0, wire.LOAD_FAILED)
    return None


def _serve(functions: list[load.Function], arena_bytes: int, device: str) -> None:
    from . import run

    arena = run.open_arena(arena_bytes)
    layout: run.Layout | None = None
    gc.disable()
    while (command := channel.read_command()) is not None:
        if isinstance(command, channel.Setup):
            layout = run.lay_out(arena, command.body, device)
            channel.reply(0, wire.DONE)
        elif layout is not None:
            _call(functions[command.function], layout, command)
        gc.collect(0)


def _call(function: load.Function, layout: object, command: channel.Go) -> None:
    from . import run

    try:
        run.run(function, layout, command)  # type: ignore[arg-type]  # imported late, see _serve
    except MemoryError:
        channel.reply(command.call_id, wire.OUT_OF_MEMORY)
    except BaseException as error:  # noqa: BLE001 (whatever a candidate raises is an answer, not our fault)
        traceback.print_exc()
        exhausted = "not enough memory" in str(error) or "out of memory" in str(error)
        channel.reply(command.call_id, wire.OUT_OF_MEMORY if exhausted else wire.RAISED)


if __name__ == "__main__":
    main()
