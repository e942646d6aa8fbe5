"""Reads the files of a user that a task's candidates are to be measured against."""

from collections.abc import Sequence
from pathlib import Path

from forge.app.user.user_paths import read_regular
from forge.domain.candidate import FILE_LIMIT_BYTES
from forge.errors import UsageError
from forge.pipeline.contender_files import SubmittedContender


def read_contenders(paths: Sequence[Path]) -> tuple[SubmittedContender, ...]:
    """Return the files' names and bytes; raise UsageError for one that isn't a file of Python text."""
    return tuple(map(_read, paths))


def _read(path: Path) -> SubmittedContender:
    try:
        content = read_regular(path, limit_bytes=FILE_LIMIT_BYTES)
    except (OSError, ValueError) as error:
        why = str(error) if isinstance(error, ValueError) else error.strerror
        raise UsageError(
            f"the contender {str(path)!r} can't be read ({why}): expected a Python file with a function 'contender'"
        ) from error
    return SubmittedContender(path.stem, content)
