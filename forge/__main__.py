"""`python -m forge` and the command `forge`: errors become one line, a hint, and an exit status."""

import gc
import sys

QUIET_ALLOCATIONS = 100_000
"""So many objects between two looks for garbage: importing makes many and drops none, so looking is for nothing."""


def main() -> None:
    """Run the command line; exit 0 done, 1 refused, 2 bad input, 3 this machine can't."""
    gc.set_threshold(QUIET_ALLOCATIONS)
    from forge.cli import app, command_of
    from forge.cli.output import say
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
        say(f"try: {error.hint or usual}")
        sys.exit(error.exit_status)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        say(f"error: {error}; nothing was recorded after the last acknowledged event")
        sys.exit(3)
    except KeyboardInterrupt:
        say("interrupted; the run can be taken up again: forge run show last")
        sys.exit(130)


def _check_text(untrusted_argument: str) -> None:
    """Raise UsageError for bytes that are no UTF-8: no ledger, document or table could hold them."""
    from forge.errors import UsageError

    try:
        untrusted_argument.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"bad argument {untrusted_argument[:80]!r}: expected text in UTF-8") from error


if __name__ == "__main__":
    main()
