"""Reads the files of a user that a task's candidates are to be measured against."""

from collections.abc import Sequence
from pathlib import Path

from forge.app.user.user_paths import read_named
from forge.domain.candidate import FILE_LIMIT_BYTES
from forge.pipeline.contender_files import SubmittedContender


def read_contenders(paths: Sequence[Path]) -> tuple[SubmittedContender, ...]:
    """Return the files' names and bytes; raise UsageError for one that isn't a file of Python text."""
    expected = "a Python file with a function 'contender'"
    return tuple(
        SubmittedContender(
            path.stem,
            read_named(path, what=f"the contender {str(path)!r}", expected=expected, limit_bytes=FILE_LIMIT_BYTES),
        )
        for path in paths
    )
