"""Describes in one line what is wrong with an untrusted document: the field, its value, and what was expected."""

import reprlib
from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from forge.domain.digest import Value
from forge.errors import near_names

PLACE_LIMIT, VALUE_LIMIT = 200, 80
"""Largest lengths in characters of a field's path and of a value in a message. They keep the message on one line."""
_EXPECTED: dict[str, str] = {
    "literal_error": "{expected}",
    "string_pattern_mismatch": "text of the form {pattern}",
    "string_too_short": "at least {min_length} character(s)",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} of them",
    "too_long": "at most {max_length} of them",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "finite_number": "a finite number",
    "string_type": "text",
    "string_unicode": "text in UTF-8",
    **dict.fromkeys(("int_type", "int_parsing", "int_parsing_size", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "named fields"),
}
"""pydantic's error type -> text that says what was expected (docs.pydantic.dev/latest/errors/validation_errors)."""


def misfit(error: ValidationError, model: type[BaseModel]) -> str:
    """Return the first reason why a document isn't a `model`, as one line that is safe on a terminal."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the document"
    shown = (place if place.isprintable() else repr(place))[:PLACE_LIMIT]
    if first["type"] == "missing":
        return f"{shown}: missing, {_expected(first, model)}"
    return f"{shown}: got {shortened(first['input'])}, {_expected(first, model)}"


def unfit(error: ValidationError) -> str:
    """Return the value of an option or argument that doesn't fit, and what was expected."""
    first = error.errors(include_url=False)[0]
    expected = _expected(first, Value)
    _, choice, names = expected.partition(" is not one of ")  # typer's words for a value that isn't in a closed list
    return f"got {shortened(first['input'])}, {f'expected one of {names}' if choice else expected}".removesuffix(".")


def shortened(value: object) -> str:
    """Return a value as Python writes it, with its middle left out if it is long or deep."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = VALUE_LIMIT
    return short.repr(value)


def _expected(first: ErrorDetails, model: type[BaseModel]) -> str:
    """Return what was expected; Forge's own validators say it in their message."""
    context: Mapping[str, object] = first.get("ctx", {})
    at_top = len(first["loc"]) == 1
    match first["type"]:
        case "missing":
            needed = (name for name, field in model.model_fields.items() if field.is_required())
            return f"expected {_listed(needed)}" if at_top else "expected this field"
        case "extra_forbidden":
            near = near_names(first["loc"][-1], model.model_fields)
            nearest = f"; nearest: {', '.join(near)}" if near else ""
            return (
                f"expected no field but {_listed(model.model_fields)}{nearest}"
                if at_top
                else "expected no such field"
            )
        case "value_error":
            return str(context["error"])
        case known if known in _EXPECTED:
            return f"expected {_EXPECTED[known].format(**context)}"
        case _:
            return first["msg"]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
