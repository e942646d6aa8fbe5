"""`python -m forge` and the command `forge`: errors become one line, a hint, and an exit status."""

import gc
import sys

QUIET_ALLOCATIONS = 100_000
"""So many objects between two looks for garbage: importing makes many and drops none, so looking is for nothing."""


def main() -> None:
    """Run the command line; exit 0 done, 1 refused, 2 bad input, 3 this machine can't."""
    gc.set_threshold(QUIET_ALLOCATIONS)
    from forge.cli import app, command_of
    from forge.errors import EnvironmentUnfit, ForgeError, UsageError

    try:
        app()
    except ForgeError as error:
        if isinstance(error, UsageError):
            usual = f"{command_of(sys.argv[1:])} --help"
        else:
            usual = "forge doctor" if isinstance(error, EnvironmentUnfit) else "forge ledger verify"
        print(f"error: {' '.join(error.message.splitlines())}", file=sys.stderr)  # noqa: T201 (the command line)
        print(f"try: {error.hint or usual}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_status)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        print(f"error: {error}; nothing was recorded after the last acknowledged event", file=sys.stderr)  # noqa: T201
        sys.exit(3)
    except KeyboardInterrupt:
        print("interrupted; the run can be taken up again: forge run show last", file=sys.stderr)  # noqa: T201
        sys.exit(130)


if __name__ == "__main__":
    main()
