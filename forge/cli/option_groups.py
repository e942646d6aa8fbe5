"""Lets several commands take the same options: a parameter may be a dataclass, whose fields are the options."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with each parameter that is a dataclass replaced by the options that are its fields.

    A field's type is `Annotated` with typer's option, and its default is the option's.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    parameters = [
        one
        for each in inspect.signature(command).parameters.values()
        for one in ([each] if each.name not in groups else _options(groups[each.name]))
    ]

    @wraps(command)
    def with_options(**given: Any) -> None:  # Any: the value of an option
        made = {
            name: group(**{one.name: given.pop(one.name) for one in fields(group)}) for name, group in groups.items()
        }
        command(**given, **made)

    listed = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    del vars(with_options)["__wrapped__"]  # the options are those of the signature, not of the command
    vars(with_options)["__signature__"] = inspect.Signature(listed)
    with_options.__annotations__ = {one.name: one.annotation for one in listed}
    return with_options


def _options(group: Any) -> Iterator[inspect.Parameter]:  # Any: a dataclass
    hints = get_type_hints(group, include_extras=True)
    for one in fields(group):
        default = inspect.Parameter.empty if one.default is MISSING else one.default
        yield inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[one.name])
