"""Completes a command line word by word: commands, options, values and ids.

It runs at each press of Tab, so it imports neither the parser nor the catalogue. `completions.json` lists commands
and values; `docs/generate.py` writes it from the code.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("completions.json")
ASKED_OF_THE_LEDGER = frozenset({"run", "task", "kernel", "session", "op"})
"""Kinds of values of which a workspace has its own."""
GENERAL = ("--help",)
Table = dict[str, Any]  # Any: a JSON document that is written from the code


def completion_table() -> Table:
    """Return all commands with their options and arguments, and the values that are known without a workspace."""
    table: Table = json.loads(TABLE.read_bytes())
    return table


def completed(words: Sequence[str]) -> list[str]:
    """Return what the last of the words may become; nothing where a path is expected."""
    table = completion_table()
    before, current = list(words[:-1]), words[-1] if words else ""
    return sorted({one for one in _candidates(table, before, current) if one.startswith(current)})


def _candidates(table: Table, before: list[str], current: str) -> Iterator[str]:
    commands: dict[str, Table] = table["commands"]
    depth = next((depth for depth in range(1, len(before) + 1) if " ".join(before[:depth]) in commands), 0)
    if depth:
        yield from _of_command(table, commands[" ".join(before[:depth])], before[depth:], current)
        return
    words = (name.split() for name in commands)
    following = [name[len(before)] for name in words if name[: len(before)] == before]
    if following:
        yield from (*following, *GENERAL, *(() if before else ("--version",)))


def _of_command(table: Table, command: Table, given: list[str], current: str) -> Iterator[str]:
    options: dict[str, Any] = command["options"]
    last = given[-1] if given else ""
    option, equals, _ = current.partition("=")
    if equals and options.get(option):
        yield from (f"{option}={value}" for value in _values(table, options[option], given))
    elif options.get(last):
        yield from _values(table, options[last], given[:-1])
    elif current.startswith("-"):
        used = {word.partition("=")[0] for word in given} - set(command["repeated"])
        yield from (*(name for name in options if name not in used), *GENERAL)
    else:
        arguments: list[str] = command["arguments"]
        place = _given_arguments(options, given)
        if arguments and (place < len(arguments) or command["many"]):
            yield from _values(table, arguments[min(place, len(arguments) - 1)], given)


def _given_arguments(options: dict[str, Any], given: list[str]) -> int:
    """Return how many of the words are arguments, and neither options nor their values."""
    count, after_option = 0, False
    for word in given:
        is_option = word.startswith("-")
        if not is_option and not after_option:
            count += 1
        after_option = is_option and bool(options.get(word))
    return count


def _values(table: Table, kind: Any, given: list[str]) -> Iterator[str]:  # Any: a kind, or the choices themselves
    if isinstance(kind, list):
        yield from kind
        return
    for one in str(kind).split("|"):
        if one == "axis":
            yield from (f"{axis}=" for axis in table["axes"].get(_value_of("--op", given), ()))
        else:
            yield from table["values"].get(one, ())
        if one in ASKED_OF_THE_LEDGER:
            from forge.app.stored.ledger_ids import known_names

            yield from known_names(one, _value_of("--home", given) or None)


def _value_of(option: str, given: list[str]) -> str:
    """Return the value of an option among the words; empty if it isn't given."""
    for place, word in enumerate(given):
        name, equals, value = word.partition("=")
        if name == option:
            return value if equals else given[place + 1] if place + 1 < len(given) else ""
    return ""
