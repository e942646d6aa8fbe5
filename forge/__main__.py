"""`python -m forge` and the command `forge`: errors become one line, a hint, and an exit status."""

import errno
import gc
import io
import os
import sys
from typing import NoReturn

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
    try:
        _run()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        _fail_of_the_system(error)


def _run() -> None:
    """Run the command; end with its exit status, and with one error if it failed."""
    import typer

    from forge.cli import command_of, command_tree
    from forge.cli.failing import fail
    from forge.cli.output import say
    from forge.cli.repeated_options import require_once
    from forge.cli.suggest import suggest
    from forge.errors import EnvironmentUnfit, ForgeError, RunNotFound, UsageError

    bad_usage = typer.BadParameter.__bases__[0]  # the class of all mistakes in arguments, whatever typer brings
    assert issubclass(bad_usage, Exception)
    try:
        for argument in sys.argv[1:]:
            _check_text(argument)
        require_once(command_tree(), sys.argv[1:])
        status = command_tree()(standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except ForgeError as error:
        usual = f"{command_of(sys.argv[1:])} --help"
        if not isinstance(error, UsageError):
            usual = "forge doctor" if isinstance(error, EnvironmentUnfit) else "forge ledger verify"
        if isinstance(error, RunNotFound):
            usual = "forge run list"
        following = error.hint or usual
        fail(error.code, error.message, following=following, status=error.exit_status, more=error.document)
    except bad_usage as error:
        if "NoArgs" in type(error).__name__:
            error.show()  # type: ignore[attr-defined]  # the help of a command without arguments
            sys.exit(2)
        said = error.format_message()  # type: ignore[attr-defined]  # a class of typer's
        fail("USAGE", said, following=f"{command_of(sys.argv[1:])} --help", status=2)
    except (KeyboardInterrupt, SystemExit, typer.Abort) as ended:  # typer makes the one of the other
        interrupted = isinstance(ended, KeyboardInterrupt | typer.Abort)
        if interrupted or (isinstance(ended, SystemExit) and ended.code == INTERRUPTED):
            say("interrupted; what was recorded stays, and a run can be taken up again")
            suggest("try", "forge run show last")
            sys.exit(INTERRUPTED)
        raise


def _fail_of_the_system(error: OSError) -> NoReturn:
    """End with an error of the system: a path that can't be followed, or a disk that refused."""
    from forge.cli import command_of
    from forge.cli.failing import fail

    if error.errno in MISTAKEN:
        said = f"{error}: expected a path that can be followed, from a current folder that is still there"
        fail("USAGE", said, following=f"{command_of(sys.argv[1:])} --help", status=2)
    said = f"{error}; what was acknowledged is recorded, and nothing after it: make room, then look"
    fail("STORAGE_FAILED", said, following="forge run list", status=3)


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
