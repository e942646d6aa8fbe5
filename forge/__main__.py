"""`python -m forge` and the command `forge`: errors become one line, a hint, and an exit status."""

import errno
import gc
import io
import os
import sys

TYPE_CHECKING = False  # as typing has it, which takes long to import
if TYPE_CHECKING:
    from typing import NoReturn

    from typer.core import TyperGroup

    from forge.errors import ForgeError

INTERRUPTED = 130
"""Exit status of an interrupted command: 128 and the number of SIGINT, as shells report it."""
QUIET_ALLOCATIONS = 100_000
"""Number of new objects between two looks for garbage. Importing drops next to none, so looking costs time alone."""
MISTAKEN = {errno.ENAMETOOLONG, errno.ENOENT, errno.ELOOP, errno.ENOTDIR}
"""Error numbers of the system for a path that can't exist, or for a current folder that is gone."""

FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
"""Error numbers of the system for a path that this user may not read or write."""


def main() -> None:
    """Run the command line; exit 0 done, 1 refused, 2 bad input, 3 this machine can't."""
    gc.set_threshold(QUIET_ALLOCATIONS)
    _open_streams()
    try:
        _run()
    except KeyboardInterrupt:  # before the command began, while packages are loaded
        _leave_interrupted()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        _fail_of_the_system(error)


def _answered_quickly(arguments: list[str]) -> bool:
    """Answer what typer isn't needed for: help, completion, a plain lookup or list; return False for all else."""
    if arguments in (["-h"], ["--help"], ["--version"]):
        from forge import __version__
        from forge.cli.index import help_text

        sys.stdout.write(f"forge {__version__}\n" if arguments == ["--version"] else help_text())
        return True
    if arguments[:1] == ["__complete"]:
        from forge.cli.completing import completed

        sys.stdout.write("".join(f"{one}\n" for one in completed(arguments[1:])))
        return True
    if arguments[:1] == ["lookup"]:
        from forge.cli.quick_lookup import quick_lookup

        return quick_lookup(arguments[1:])
    if arguments[:1] == ["op"]:
        from forge.cli.quick_operations import quick_operation

        return quick_operation(arguments[1:])
    if arguments[:1] == ["skill"]:
        from forge.cli.quick_skills import quick_skill

        return quick_skill(arguments[1:])
    if arguments[1:2] in (["list"], ["show"], ["log"]):
        from forge.cli.quick_lists import quick_list

        return quick_list(arguments)
    return False


def _run() -> None:
    """Run the command; end with its exit status, and with one error if it failed."""
    if _answered_quickly(sys.argv[1:]):
        sys.stdout.flush()
        sys.exit(0)
    try:
        import typer
    except ImportError as error:
        sys.stderr.write(f"error[ENVIRONMENT_UNFIT]: {error}: expected the packages that Forge's commands need\n")
        sys.stderr.write("try: pip install tensorpath-forge\n")
        sys.exit(3)

    from forge.errors import ForgeError

    bad_usage = typer.BadParameter.__bases__[0]  # the class of all mistakes in arguments, whatever typer brings
    assert issubclass(bad_usage, Exception)
    try:
        for argument in sys.argv[1:]:
            _check_text(argument)
        sys.exit(_status_of(sys.argv[1:]))
    except ForgeError as error:
        _fail_with(error)
    except bad_usage as error:
        _fail_of_usage(error)
    except (KeyboardInterrupt, SystemExit, typer.Abort) as ended:  # typer makes the one of the other
        interrupted = isinstance(ended, KeyboardInterrupt | typer.Abort)
        if interrupted or (isinstance(ended, SystemExit) and ended.code == INTERRUPTED):
            _leave_interrupted(_goes_on_with(ended))
        raise


def _status_of(arguments: list[str]) -> int:
    """Run a command; return its exit status. Typer reads arguments that aren't plain."""
    from forge.cli.direct_call import direct_call, run_directly

    call = direct_call(arguments)
    if call is not None:
        return run_directly(call)
    from forge.cli.help_page import help_page
    from forge.cli.repeated_options import require_once

    page = help_page(arguments)
    if page is not None:
        sys.stdout.write(f"{page}\n")
        return 0
    tree = _tree_for(arguments)
    require_once(tree, arguments)
    status = tree(standalone_mode=False)
    return status if isinstance(status, int) else 0


def _fail_with(error: "ForgeError") -> "NoReturn":
    """End with an error of Forge and the next command: its own, its class's, or the help of the command."""
    from forge.cli import command_of
    from forge.cli.failing import fail

    following = error.hint or error.next_step or f"{command_of(sys.argv[1:])} --help"
    fail(error.code, error.message, following=following, status=error.exit_status, more=error.document)


def _fail_of_usage(error: Exception) -> "NoReturn":
    """End with a mistake in the arguments; without any argument, with the help of a group."""
    from pydantic import ValidationError

    from forge.cli import command_of
    from forge.cli.failing import fail
    from forge.cli.index import help_text
    from forge.domain.misfit import unfit

    if "NoArgs" in type(error).__name__:
        if sys.argv[1:]:
            error.show()  # type: ignore[attr-defined]  # a class of typer's
        else:
            sys.stderr.write(help_text())
        sys.exit(2)
    said: str = error.format_message()  # type: ignore[attr-defined]
    if isinstance(error.__cause__, ValidationError):
        said = f"{said.removesuffix(str(getattr(error, 'message', '')))}{unfit(error.__cause__)}"
    said = said.replace("Choose from:\n\t", "Expected one of ").replace(",\n\t", ", ")  # typer's list of choices
    named = command_of(sys.argv[1:])
    known, _, last = named.rpartition(" ")
    if said.startswith(f"No such command {last!r}"):
        named = known
    fail("USAGE", said, following=f"{named} --help", status=2)


def _goes_on_with(ended: BaseException) -> str | None:
    """Return the command that an interrupted one said will go on; typer keeps the interruption as a cause."""
    said = [one.args[0] for one in (ended, ended.__cause__) if isinstance(one, KeyboardInterrupt) and one.args]
    return str(said[0]) if said else None


def _leave_interrupted(following: str | None = None) -> "NoReturn":
    """End after an interruption; name what goes on: the command that was said, or the run that the command had."""
    from forge.cli.output import say
    from forge.cli.suggest import after_interruption, suggest

    said, usual = after_interruption(sys.argv[1:])
    say(f"interrupted; {said}")
    suggest("try", following or usual)
    sys.exit(INTERRUPTED)


def _tree_for(arguments: list[str]) -> "TyperGroup":
    """Return the commands of the asked one's file; raise UnknownName if there is no such command."""
    from forge.cli.index import FILES
    from forge.cli.tree import tree_of
    from forge.errors import UnknownName

    command = arguments[0] if arguments else None
    if command is None or command.startswith("-"):
        return tree_of(None)
    if command not in FILES:
        raise UnknownName("command", command, list(FILES), listed_by="forge --help")
    return tree_of(command)


def _fail_of_the_system(error: OSError) -> "NoReturn":
    """End with an error of the system: a path that can't be followed, or a disk that refused."""
    from forge.cli import command_of
    from forge.cli.failing import fail

    if error.errno in MISTAKEN:
        said = f"{error}: expected a path that can be followed, from a current folder that is still there"
        fail("USAGE", said, following=f"{command_of(sys.argv[1:])} --help", status=2)
    if error.errno in FORBIDDEN:
        said = f"{error}; what was acknowledged is recorded: expected a path that this user may read and write"
        fail("USAGE", said, following=f"{command_of(sys.argv[1:])} --help", status=2)
    said = f"{error}; what was acknowledged is recorded, and nothing after it: make room, then look"
    fail("STORAGE_FAILED", said, following="forge run list", status=3)


def _open_streams() -> None:
    """Open /dev/null for a closed stdout or stderr, and write characters that a stream can't hold as escapes."""
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
