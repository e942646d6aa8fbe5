"""Reads a template's folder: the five files of a candidate, and the space.json beside them."""

from pathlib import Path

from forge.authors.search.space import SPACE_FILE
from forge.domain.candidate_files import REQUIRED_FILES
from forge.errors import UsageError
from forge.pipeline.candidate_folder import BadFolder, read_file, read_folder

HINT = "forge agent run --help"


def template_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a template's folder, as far as they can be read; raise UsageError for anything else."""
    if not folder.is_dir():
        expected = f"{', '.join(REQUIRED_FILES)} and {SPACE_FILE}"
        raise UsageError(f"{str(folder)!r} is not a folder: expected one with {expected}", hint=HINT)
    files, problem = read_folder(folder)
    space = problem or read_file(folder / SPACE_FILE)
    if isinstance(space, BadFolder):
        raise UsageError(f"bad template {str(folder)!r}: {space.message}", hint=HINT)
    return {**files, SPACE_FILE: space}
