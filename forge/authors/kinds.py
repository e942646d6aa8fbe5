"""The kinds of authors, and how each is made from what a session stored of it.

To add a kind: its file, its line in `KINDS`, and its name in `forge/authors/__init__.py`.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError

from forge.authors.folders import FolderAuthor
from forge.authors.model.author import ModelAuthor, ModelOptions
from forge.authors.outside import OutsideAuthor, OutsideOptions
from forge.authors.search.author import SearchAuthor, SearchOptions
from forge.authors.search.space import SPACE_FILE
from forge.authors.search.template import parse_template
from forge.domain.authoring import Author, Draft
from forge.domain.digest import Value
from forge.domain.misfit import misfit
from forge.errors import UnknownName, UsageError

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


class AuthorKind(NamedTuple):
    """What an author of this kind works from, and how it is made from that."""

    works_from: Literal["template", "folders", "brief"]
    make: Callable[[AuthorSource], Author]


def find_kind(name: str) -> AuthorKind:
    """Return the kind of this name; raise UnknownName."""
    if name not in KINDS:
        raise UnknownName("author", name, list(KINDS))
    return KINDS[name]


def make_author(source: AuthorSource) -> Author:
    """Return the author; raise UsageError for a bad template or option, and UnknownName for another kind."""
    return find_kind(source.kind).make(source)


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


KINDS: dict[str, AuthorKind] = {
    "search": AuthorKind("template", _search),
    "folders": AuthorKind("folders", _of_folders),
    "model": AuthorKind("brief", _model),
    "command": AuthorKind("brief", _outside),
    "person": AuthorKind("brief", _outside),
}
"""Name of a kind -> the kind."""
