"""Calls a command with plain options by its own signature, without typer's parser.

The parser loads pydantic to convert values: half of what a short command costs. A command is called here if each
option is known, given once and has a plain value. Everything else, and every mistake, is left to the parser.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import typer
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo, ParamMeta
from typer.utils import get_params_from_function

from forge.cli.index import FILES, NOUNS

Command = Callable[..., None]
MOST_DIGITS = 9
"""Number of digits of a number that is read here, at most. Chosen; longer ones are left to the parser."""
UNDERSTOOD = {"default", "param_decls", "help", "metavar", "show_default", "hidden", "min", "max", "callback"}
"""Attributes of typer's description of a parameter that are followed here. Any other must be as it is by default."""


class NotPlain(Exception):
    """Something that only the parser can read."""


class Wanted(NamedTuple):
    """A parameter of a command."""

    name: str
    info: ParameterInfo
    annotation: Any  # a type, or a union or list of types

    @property
    def kind(self) -> Any:
        """Return the type of one value."""
        members = [one for one in get_args(self.annotation) if one is not NoneType]
        is_optional = get_origin(self.annotation) in (Union, UnionType) and len(members) == 1
        found = members[0] if is_optional else self.annotation
        return get_args(found)[0] if get_origin(found) is list else found

    @property
    def is_repeated(self) -> bool:
        """Return whether each value that is given counts."""
        return list in {get_origin(one) for one in (self.annotation, *get_args(self.annotation))}

    @property
    def options(self) -> tuple[str, ...]:
        """Return the names under which the option is given; none for an argument."""
        if isinstance(self.info, ArgumentInfo):
            return ()
        return tuple(self.info.param_decls or ()) or (f"--{self.name.replace('_', '-')}",)


def direct_call(arguments: Sequence[str]) -> Callable[[], None] | None:
    """Return the call that the arguments mean; None if the parser must read them."""
    try:
        command, rest = _command(arguments)
        return partial(command, **_read(_wanted(command), rest))
    except NotPlain:
        return None


def _command(arguments: Sequence[str]) -> tuple[Command, Sequence[str]]:
    """Return the function of a command, and the arguments after the command's name."""
    name, *rest = arguments or [""]
    if name not in FILES:
        raise NotPlain
    module = import_module(f"forge.cli.{FILES[name]}")
    if name not in NOUNS:
        command: Command = getattr(module, name.replace("-", "_"))
        return command, rest
    return _in_group(module.app, rest)


def _in_group(app: typer.Typer, words: Sequence[str]) -> tuple[Command, Sequence[str]]:
    """Return the function that the first words name in a group, or in a group inside it, and the other words."""
    for one in app.registered_commands:
        if one.callback is not None and words[:1] == [one.name or one.callback.__name__.replace("_", "-")]:
            return one.callback, words[1:]
    for group in app.registered_groups:
        if words[:1] == [group.name] and group.typer_instance is not None:
            return _in_group(group.typer_instance, words[1:])
    raise NotPlain


def _wanted(command: Command) -> list[Wanted]:
    """Return the parameters of a command, all of which can be read here."""
    return [_parameter(one) for one in get_params_from_function(command).values()]


def _parameter(found: ParamMeta) -> Wanted:
    info = found.default
    if not isinstance(info, ParameterInfo):
        raise NotPlain
    usual = vars(OptionInfo() if isinstance(info, OptionInfo) else ArgumentInfo())
    if any(value != usual[name] for name, value in vars(info).items() if name not in UNDERSTOOD):
        raise NotPlain
    return Wanted(found.name, info, found.annotation)


def _read(wanted: Sequence[Wanted], arguments: Sequence[str]) -> dict[str, Any]:
    """Return the value of each parameter."""
    options = {option: one for one in wanted for option in one.options}
    places = [one for one in wanted if not one.options]
    given: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        option, equals, text = word.partition("=") if word.startswith("-") else (None, "", word)
        one = _place(places) if option is None else options.get(option)
        if one is None or one.info.callback is not None:
            raise NotPlain
        if option is not None and one.kind is not bool and not equals:
            text = _next(rest)
        value = _value(one, text, is_flag=option is not None and not equals)
        if one.is_repeated:
            value = [*given.get(one.name, ()), value]
        elif one.name in given:
            raise NotPlain
        given[one.name] = value
    return {one.name: given[one.name] if one.name in given else _default(one) for one in wanted}


def _place(places: "list[Wanted]") -> Wanted:
    """Return the parameter of the next argument; a repeated one takes all that are left."""
    if places and places[0].is_repeated:
        return places[0]
    found: Wanted = _next(places)
    return found


def _next(rest: "list[Any]") -> Any:
    if not rest:
        raise NotPlain
    return rest.pop(0)


def _default(one: Wanted) -> Any:
    """Return the value of a parameter that isn't given."""
    if one.info.default is ...:
        raise NotPlain
    return one.info.default


def _value(one: Wanted, text: str, *, is_flag: bool) -> Any:
    """Return a value, if it is plain and within its bounds."""
    if one.kind is bool:
        if not is_flag or one.info.default is not False:
            raise NotPlain
        return True
    if not text or text.startswith("-") or not text.isprintable():
        raise NotPlain
    if one.kind in (str, Path):
        return one.kind(text)
    if get_origin(one.kind) is Literal and text in get_args(one.kind):
        return text
    if one.kind in (int, float):
        return _number(one, text)
    raise NotPlain


def _number(one: Wanted, text: str) -> Any:
    whole, point, part = text.partition(".")
    is_plain = text.isascii() and whole.isdigit() and (part.isdigit() or not point) and len(text) <= MOST_DIGITS
    if not is_plain or (point and one.kind is int):
        raise NotPlain
    value = one.kind(text)
    low, high = one.info.min, one.info.max
    if (low is not None and value < low) or (high is not None and value > high):
        raise NotPlain
    return value


def run_directly(call: Callable[[], None]) -> int:
    """Call a command; return its exit status."""
    try:
        call()
    except typer.Exit as ended:
        return ended.exit_code
    return 0
