"""Turns what a person chose at the command line into an author, its prices, and what answers its requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from forge.app.sessions.authors import AuthorSource, read_source
from forge.app.sessions.briefed import briefed_source, known_prices, model_of, model_settings
from forge.app.sessions.ledger_ground import Model
from forge.app.workspace import Workspace
from forge.domain.budget import Price
from forge.errors import UsageError

HINT = "forge agent run --help"
"""Command that lists the options of an author."""


@dataclass(frozen=True, kw_only=True)
class AuthorChoice:
    """Which author a person wants, and what it is made from."""

    kind: str
    template: Path | None = None
    model: str | None = None
    base_url: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def source_of(workspace: Workspace, task: str, choice: AuthorChoice) -> AuthorSource:
    """Return what the chosen author is made from; raise UsageError for options that don't fit it."""
    _require(choice, "--model", choice.model is not None, wanted=choice.kind == "model")
    _require(choice, "--base-url", choice.base_url is not None, wanted=None if choice.kind == "model" else False)
    if choice.kind == "model":
        assert choice.model is not None
        _require(choice, "--template", choice.template is not None, wanted=False)
        settings = model_settings(choice.model, choice.base_url, choice.options)
        return briefed_source(workspace, task, kind="model", settings=settings)
    _require(choice, "--template", choice.template is not None, wanted=True)
    assert choice.template is not None
    return read_source(
        choice.kind, choice.template, {name: _whole(name, one) for name, one in choice.options.items()}
    )


def answering(source: AuthorSource, key_file: Path | None) -> Model | None:
    """Return what answers the author's requests; None if it makes none."""
    return model_of(source, key_file) if source.kind == "model" else None


def prices_for(source: AuthorSource, prices: tuple[Price, ...]) -> tuple[Price, ...]:
    """Return the prices that a session of this author freezes."""
    return known_prices(source, prices) if source.kind == "model" else prices


def _require(choice: AuthorChoice, option: str, given: bool, *, wanted: bool | None) -> None:
    """Raise UsageError if an option is missing or too many. `wanted` None: it may be given."""
    if wanted is not None and given != wanted:
        expected = option if wanted else f"no {option}"
        raise UsageError(f"author {choice.kind!r}: expected {expected}", hint=HINT)


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len("100000")):
        raise UsageError(f"bad option {name}={text!r:.100}: expected NAME=N, such as finalists=2", hint=HINT)
    return int(text)
