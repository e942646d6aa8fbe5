"""`python -m forge` and the command `forge`: errors become one line, a hint, and an exit status."""

import sys


def main() -> None:
    """Run the command line; exit 0 done, 1 refused, 2 bad input, 3 this machine can't."""
    from forge.cli import app
    from forge.errors import ForgeError

    try:
        app()
    except ForgeError as error:
        print(f"error: {error.message}", file=sys.stderr)  # noqa: T201 (this is the command line)
        if error.hint:
            print(f"try: {error.hint}", file=sys.stderr)  # noqa: T201
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
