"""Reads the folders that authors are made from."""

from collections.abc import Mapping
from pathlib import Path

from forge.authors.kinds import AuthorSource, find_kind
from forge.authors.search.space import SPACE_FILE
from forge.domain.candidate_files import REQUIRED_FILES
from forge.errors import UsageError
from forge.pipeline.candidate_folder import BadFolder, read_file, read_folder

MOST_FOLDERS = 1000
"""Number of candidate folders that one session submits, at most: more would take days."""
HINT = "forge agent run --help"
"""Command that lists the options of an author."""


def read_source(kind: str, template: Path, options: Mapping[str, int]) -> AuthorSource:
    """Read what an author of this kind is made from; raise UsageError for a folder that isn't fit."""
    works_from = find_kind(kind).works_from
    if works_from == "brief":
        raise UsageError(f"author {kind!r} works from the task's brief and has no template: leave --template out")
    if not template.is_dir():
        raise UsageError(f"{str(template)!r} is not a folder: expected a template's folder")
    files = _template_files(template) if works_from == "template" else _folders(template)
    return AuthorSource(kind=kind, files=files, options=dict(options))


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


def _template_files(folder: Path) -> dict[str, str]:
    return {name: content.decode() for name, content in template_files(folder).items()}


def _folders(folder: Path) -> dict[str, str]:
    """Read the candidates' files. One that isn't there stays away, and its candidate is refused on the record."""
    subfolders = sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))
    if not 1 <= len(subfolders) <= MOST_FOLDERS:
        found_said = f"{str(folder)!r} has {len(subfolders)} folders"
        raise UsageError(f"{found_said}: expected 1 to {MOST_FOLDERS}, each with a candidate's five files")
    found = {}
    for path in (one / name for one in subfolders for name in REQUIRED_FILES):
        if path.exists() or path.is_symlink():
            content = read_file(path)
            if isinstance(content, BadFolder):
                raise UsageError(f"bad candidate {str(path.parent)!r}: {content.message}")
            found[f"{path.parent.name}/{path.name}"] = content.decode()
    drafts = {name.partition("/")[0] for name in found}
    for one in subfolders:
        if one.name not in drafts and one.name != "__pycache__":
            raise UsageError(f"the folder {str(one)!r} has no candidate: expected {', '.join(REQUIRED_FILES)} in it")
    return found
