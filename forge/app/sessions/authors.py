"""Makes authors from folders, and again from what a session stored of them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from forge.authors.folders import FolderAuthor
from forge.authors.search.author import SearchAuthor, SearchOptions
from forge.authors.search.space import SPACE_FILE
from forge.authors.search.template import parse_template
from forge.domain.authoring import Author, Draft
from forge.domain.candidate import FILE_LIMIT_BYTES, REQUIRED_FILES
from forge.domain.digest import Value
from forge.errors import UnknownName, UsageError

MOST_FOLDERS = 1000
"""Number of candidate folders that one session hands in, at most: more would take days."""


class AuthorSource(Value):
    """All that an author is made from, as a session stores it."""

    kind: str
    files: dict[str, str]
    """Path inside the template's folder -> text."""
    options: dict[str, int]


def read_source(kind: str, template: Path, options: Mapping[str, int]) -> AuthorSource:
    """Read what an author of this kind is made from; raise UsageError for a folder that isn't fit."""
    if kind not in KINDS:
        raise UnknownName("author", kind, list(KINDS))
    if not template.is_dir():
        raise UsageError(f"{str(template)!r} is not a folder: expected a template's folder")
    files = {path: text for path, text in KINDS[kind][0](template).items() if text is not None}
    return AuthorSource(kind=kind, files=files, options=dict(options))


def make_author(source: AuthorSource) -> Author:
    """Return the author; raise UsageError for a bad template or option, and UnknownName for another kind."""
    if source.kind not in KINDS:
        raise UnknownName("author", source.kind, list(KINDS))
    return KINDS[source.kind][1](source)


def _template_files(folder: Path) -> dict[str, str | None]:
    return {name: _text(folder / name) for name in (*REQUIRED_FILES, SPACE_FILE)}


def _folders(folder: Path) -> dict[str, str | None]:
    subfolders = sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))
    if not 1 <= len(subfolders) <= MOST_FOLDERS:
        raise UsageError(
            f"{str(folder)!r} has {len(subfolders)} folders: expected 1 to {MOST_FOLDERS}, each with {REQUIRED_FILES}"
        )
    return {f"{one.name}/{name}": _text(one / name) for one in subfolders for name in REQUIRED_FILES}


def _text(path: Path) -> str | None:
    """Return a file's text; None if there is none. Raises UsageError for a link, a large file and other encodings."""
    if path.is_symlink() or not path.is_file():
        if path.exists() or path.is_symlink():
            raise UsageError(f"{str(path)!r} is no regular file: put the file itself there")
        return None
    with path.open("rb") as file:
        content = file.read(FILE_LIMIT_BYTES + 1)
    if len(content) > FILE_LIMIT_BYTES:
        raise UsageError(f"{str(path)!r} has more than {FILE_LIMIT_BYTES} bytes: expected a smaller file")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} isn't UTF-8 (byte {error.start}): expected text") from error


def _search(source: AuthorSource) -> Author:
    files = {name: text.encode() for name, text in source.files.items()}
    space = files.pop(SPACE_FILE, None)
    if space is None:
        raise UsageError(f"the template has no {SPACE_FILE}: expected {', '.join(REQUIRED_FILES)} and {SPACE_FILE}")
    return SearchAuthor(parse_template(files, space), SearchOptions.model_validate(source.options))


def _of_folders(source: AuthorSource) -> Author:
    drafts: dict[str, dict[str, str]] = {}
    for path, text in source.files.items():
        folder, _, name = path.partition("/")
        drafts.setdefault(folder, {})[name] = text
    return FolderAuthor(tuple(Draft(files=files, hypothesis=f"folder {name}") for name, files in drafts.items()))


KINDS: dict[str, tuple[Callable[[Path], dict[str, str | None]], Callable[[AuthorSource], Author]]] = {
    "search": (_template_files, _search),
    "folders": (_folders, _of_folders),
}
"""Kind of author -> how its folder is read, and how it is made from what was read."""
