"""`python -m forge` and the command `forge`: errors become one line, a hint, and an exit status."""

import errno
import gc
import io
import os
import sys

INTERRUPTED = 130
"""128 and SIGINT, as shells have it."""
QUIET_ALLOCATIONS = 100_000
"""So many objects between two looks for garbage: importing makes many and drops none, so looking is for nothing."""
MISTAKEN = {errno.ENAMETOOLONG, errno.ENOENT, errno.ELOOP}
"""What the system says of a path that can't be, or of a current folder that is gone."""


def main() -> None:
    """Run the command line; exit 0 done, 1 refused, 2 bad input, 3 this machine can't."""
    gc.set_threshold(QUIET_ALLOCATIONS)
    _open_streams()
    from forge.cli import app, command_of
    from forge.cli.output import say
    from forge.cli.suggest import suggest
    from forge.errors import EnvironmentUnfit, ForgeError, UsageError

    try:
        for argument in sys.argv[1:]:
            _check_text(argument)
        app()
    except ForgeError as error:
        if isinstance(error, UsageError):
            usual = f"{command_of(sys.argv[1:])} --help"
        else:
            usual = "forge doctor" if isinstance(error, EnvironmentUnfit) else "forge ledger verify"
        say(f"error: {' '.join(error.message.splitlines())}")
        suggest("try", error.hint or usual)
        sys.exit(error.exit_status)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        if error.errno in MISTAKEN:
            say(f"error: {error}: expected a path that can be followed, from a current folder that is still there")
            suggest("try", f"{command_of(sys.argv[1:])} --help")
            sys.exit(2)
        say(f"error: {error}; what was acknowledged is recorded, and nothing after it: make room, then look")
        suggest("try", "forge run list")
        sys.exit(3)
    except (KeyboardInterrupt, SystemExit) as ended:  # typer makes the one of the other
        if isinstance(ended, KeyboardInterrupt) or ended.code == INTERRUPTED:
            say("interrupted; what was recorded stays, and a run can be taken up again")
            suggest("try", "forge run show last")
            sys.exit(INTERRUPTED)
        raise


def _open_streams() -> None:
    """Have somewhere to write, whatever was closed, and nothing that can't be written there."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (as long as the process lives)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _check_text(untrusted_argument: str) -> None:
    """Raise UsageError for bytes that are no UTF-8: no ledger, document or table could hold them."""
    from forge.errors import UsageError

    try:
        untrusted_argument.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"bad argument {untrusted_argument[:80]!r}: expected text in UTF-8") from error


if __name__ == "__main__":
    main()
