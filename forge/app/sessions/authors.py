"""Makes authors from folders, and again from what a session stored of them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from forge.authors.folders import FolderAuthor
from forge.authors.model.author import ModelAuthor, ModelOptions
from forge.authors.outside import OutsideAuthor, OutsideOptions
from forge.authors.search.author import SearchAuthor, SearchOptions
from forge.authors.search.space import SPACE_FILE
from forge.authors.search.template import parse_template
from forge.domain.authoring import Author, Draft
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.digest import Value
from forge.domain.misfit import misfit
from forge.errors import UnknownName, UsageError
from forge.pipeline.candidate_folder import BadFolder, read_file, read_folder

MOST_FOLDERS = 1000
"""Number of candidate folders that one session submits, at most: more would take days."""
HINT = "forge agent run --help"
"""Command that lists the options of an author."""
BRIEF = "brief.md"
"""Name under which a session stores the brief that its author works from."""


class AuthorSource(Value):
    """All that an author is made from, as a session stores it."""

    kind: str
    files: dict[str, str]
    """Path inside the template's folder -> text."""
    options: dict[str, int]
    settings: dict[str, str] = Field(default_factory=dict, exclude_if=lambda settings: not settings)
    """Further settings in text, such as the name of a model. A key is never among them."""


def read_source(kind: str, template: Path, options: Mapping[str, int]) -> AuthorSource:
    """Read what an author of this kind is made from; raise UsageError for a folder that isn't fit."""
    if kind not in KINDS:
        raise UnknownName("author", kind, list(KINDS))
    read = KINDS[kind][0]
    if read is None:
        raise UsageError(f"author {kind!r} works from the task's brief and has no template: leave --template out")
    if not template.is_dir():
        raise UsageError(f"{str(template)!r} is not a folder: expected a template's folder")
    return AuthorSource(kind=kind, files=read(template), options=dict(options))


def make_author(source: AuthorSource) -> Author:
    """Return the author; raise UsageError for a bad template or option, and UnknownName for another kind."""
    if source.kind not in KINDS:
        raise UnknownName("author", source.kind, list(KINDS))
    return KINDS[source.kind][1](source)


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
    return found


def _search(source: AuthorSource) -> Author:
    files = {name: text.encode() for name, text in source.files.items()}
    try:
        options = SearchOptions.model_validate(source.options)
    except ValidationError as error:
        raise UsageError(f"bad option of the search: {misfit(error, SearchOptions)}") from error
    return SearchAuthor(parse_template(files, files.pop(SPACE_FILE, b"")), options)


def _of_folders(source: AuthorSource) -> Author:
    drafts: dict[str, dict[str, str]] = {}
    for path, text in source.files.items():
        folder, _, name = path.partition("/")
        drafts.setdefault(folder, {})[name] = text
    return FolderAuthor(tuple(Draft(files=files, hypothesis=f"folder {name}") for name, files in drafts.items()))


def _model(source: AuthorSource) -> Author:
    files = dict(source.files)
    brief = files.pop(BRIEF)
    return ModelAuthor(brief, files, ModelOptions.model_validate_json(source.settings["options"]))


def _outside(source: AuthorSource) -> Author:
    options = OutsideOptions.model_validate_json(source.settings["options"])
    kind: Literal["command", "person"] = "command" if source.kind == "command" else "person"
    return OutsideAuthor(kind, source.files[BRIEF], options, source.settings.get("command", ""))


KINDS: dict[str, tuple[Callable[[Path], dict[str, str]] | None, Callable[[AuthorSource], Author]]] = {
    "search": (_template_files, _search),
    "folders": (_folders, _of_folders),
    "model": (None, _model),
    "command": (None, _outside),
    "person": (None, _outside),
}
"""Kind of author -> how its folder is read, and how it is made from what was read. None: it is made from a brief."""
