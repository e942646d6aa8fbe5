"""Turns what a person chose at the command line into an author, its prices, and what answers its requests."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from pydantic import ValidationError

from forge.app.sessions.author_folders import read_source
from forge.app.sessions.briefed import briefed_source, known_prices, model_of, model_settings
from forge.app.sessions.coding_agent import CodingAgent, parse_command
from forge.app.sessions.model_exchange import Model
from forge.app.workspace import Workspace
from forge.authors.kinds import BRIEF, KINDS, AuthorSource
from forge.authors.outside import OutsideOptions
from forge.domain.budget import Price
from forge.domain.misfit import misfit
from forge.errors import UnknownName, UsageError

TAKES: dict[str, dict[str, bool | None]] = {
    "model": {"--model": True, "--base-url": None, "--profile": None},
    "command": {"--agent-cmd": True, "--allow": None, "--allow-env": None, "--profile": None},
    "person": {"--profile": None},
}
"""Author that works from a brief -> its options, and whether each must be given. None: it may be."""
MICRO = 1_000_000
"""Number of micro-dollars in a dollar."""
_AMOUNT = r"[0-9]{1,6}(?:\.[0-9]{1,6})?"
"""Pattern of an amount in dollars, with at most six decimals: whole micro-dollars."""
_PRICE = re.compile(rf"(?P<model>[^=\s]{{1,100}})=(?P<prompt>{_AMOUNT}),(?P<answer>{_AMOUNT})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class AuthorChoice:
    """Which author a person wants, and what it is made from."""

    kind: str
    template: Path | None = None
    model: str | None = None
    base_url: str | None = None
    agent_cmd: str | None = None
    allow: tuple[str, ...] = ()
    allow_env: tuple[str, ...] = ()
    profile: str | None = None
    """Profiler and file, as `TOOL:FILE`, whose numbers go into the brief."""
    options: Mapping[str, str] = field(default_factory=dict)

    def given(self) -> dict[str, bool]:
        """Return each option of an author, and whether it was given."""
        return {
            "--template": self.template is not None,
            "--model": self.model is not None,
            "--base-url": self.base_url is not None,
            "--agent-cmd": self.agent_cmd is not None,
            "--allow": bool(self.allow),
            "--allow-env": bool(self.allow_env),
            "--profile": self.profile is not None,
        }


def require_means(workspace: Workspace, choice: AuthorChoice, key_file: Path | None) -> None:
    """Raise UsageError for options that don't fit the author, and for a model without its key; it needs no task."""
    _require_options(choice)
    if choice.kind == "model":
        assert choice.model is not None
        settings = model_settings(choice.model, choice.base_url, choice.options)
        model_of(AuthorSource(kind="model", files={}, options={}, settings=settings), key_file)
    elif choice.kind in TAKES:
        _outside_settings(workspace, choice)


def source_of(workspace: Workspace, task: str, choice: AuthorChoice) -> AuthorSource:
    """Return what the chosen author is made from; raise UsageError for options that don't fit it."""
    _require_options(choice)
    if choice.kind == "model":
        assert choice.model is not None
        settings = model_settings(choice.model, choice.base_url, choice.options)
        return briefed_source(workspace, task, kind="model", settings=settings, profile=choice.profile)
    if choice.kind in TAKES:
        settings = _outside_settings(workspace, choice)
        return briefed_source(workspace, task, kind=choice.kind, settings=settings, profile=choice.profile)
    assert choice.template is not None
    return read_source(
        choice.kind, choice.template, {name: _whole(name, one) for name, one in choice.options.items()}
    )


def _require_options(choice: AuthorChoice) -> None:
    if choice.kind not in KINDS:
        raise UnknownName("author", choice.kind, list(KINDS))
    wanted = TAKES.get(choice.kind, {"--template": True})
    for option, given in choice.given().items():
        if wanted.get(option, False) is not given and wanted.get(option, False) is not None:
            expected = f"no {option}" if given else option
            raise UsageError(f"author {choice.kind!r}: expected {expected}")


def answering(workspace: Workspace, source: AuthorSource, key_file: Path | None) -> "Model | CodingAgent | None":
    """Return what answers the author's requests; None if it makes none, or if a person answers them later."""
    if source.kind == "model":
        return model_of(source, key_file)
    if source.kind != "command":
        return None
    allow, variables = (json.loads(source.settings[name]) for name in ("allow", "allow_env"))
    command = parse_command(source.settings["command"], allow, variables, workspace.home)
    files = {name: text for name, text in source.files.items() if name != BRIEF}
    hidden = (workspace.home, *([key_file] if key_file is not None else []))
    return CodingAgent(command=command, brief=source.files[BRIEF], files=files, hidden=hidden)


def prices_for(source: AuthorSource, prices: tuple[Price, ...]) -> tuple[Price, ...]:
    """Return the prices that a session of this author freezes."""
    return known_prices(source, prices) if source.kind == "model" else prices


def _outside_settings(workspace: Workspace, choice: AuthorChoice) -> dict[str, str]:
    """Return the stored settings of a command or a person; raise UsageError for those that can't work here."""
    unknown = sorted(set(choice.options) - set(OutsideOptions.model_fields))
    if unknown:
        raise UsageError(f"unknown option {unknown[0]!r} of author {choice.kind!r}: expected minutes")
    try:
        options = OutsideOptions.model_validate(dict(choice.options))
    except ValidationError as error:
        raise UsageError(f"bad option: {misfit(error, OutsideOptions)}") from error
    settings = {"options": options.model_dump_json()}
    if choice.kind == "person":
        return settings
    assert choice.agent_cmd is not None
    parse_command(choice.agent_cmd, choice.allow, choice.allow_env, workspace.home)
    lists = {"allow": json.dumps(choice.allow), "allow_env": json.dumps(choice.allow_env)}
    return {**settings, "command": choice.agent_cmd, **lists}


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len("100000")):
        raise UsageError(f"bad option {name}={text!r:.100}: expected NAME=N, such as finalists=2")
    return int(text)


def parse_price(untrusted_text: str) -> Price:
    """Return a model's price from `MODEL=IN,OUT`, in dollars for a million tokens; raise UsageError."""
    found = _PRICE.fullmatch(untrusted_text)
    if found is None:
        raise UsageError(
            f"bad price {untrusted_text!r:.200}: expected MODEL=IN,OUT in dollars for a million tokens, with at most "
            "six decimals, such as example-1=3,15"
        )
    return Price(
        model=found["model"],
        prompt_micro_dollars=int(Decimal(found["prompt"]) * MICRO),
        answer_micro_dollars=int(Decimal(found["answer"]) * MICRO),
    )
