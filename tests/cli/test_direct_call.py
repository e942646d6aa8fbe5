"""A command that is called without the parser gets what the parser would give it; mistakes go to the parser."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, get_args, get_type_hints

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as some
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from forge.cli.direct_call import _command, direct_call
from forge.cli.repeated_options import require_once
from forge.cli.tree import tree_of


def commands(group: TyperGroup, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], TyperCommand]]:
    for name, one in group.commands.items():
        if isinstance(one, TyperGroup):
            yield from commands(one, (*before, name))
        elif isinstance(one, TyperCommand):
            yield (*before, name), one


COMMANDS = dict(commands(tree_of(None)))
VALUES = ("softmax", "h200", "3", "0", "90", "1000000000", "-1", "1.5", "1.", "latency=3", "", "a\tb", "last", "here")


def by_the_parser(words: Sequence[str], rest: Sequence[str]) -> dict[str, Any]:
    """What typer calls a function with that has the signature of the command's own."""
    require_once(tree_of(None), [*words, *rest])
    parser, found = parser_of(tuple(words))
    found.clear()
    parser.main(list(rest), standalone_mode=False)
    return found[0]


@cache
def parser_of(words: tuple[str, ...]) -> tuple[Any, list[dict[str, Any]]]:
    """A command that only keeps what it is called with, and the list where it keeps it."""
    command = _command([*words])[0]
    found: list[dict[str, Any]] = []

    def recorded(**given: Any) -> None:
        found.append(given)

    vars(recorded)["__signature__"] = inspect.signature(command)
    recorded.__annotations__ = get_type_hints(command, include_extras=True)
    app = typer.Typer(add_completion=False)
    app.command()(recorded)
    return get_command(app), found


def called(words: Sequence[str], rest: Sequence[str]) -> dict[str, Any] | None:
    call: Callable[[], None] | None = direct_call([*words, *rest])
    assert call is None or isinstance(call, partial)
    return None if call is None else call.keywords


def plain(one: Any) -> tuple[str, ...]:
    """One of typer's parameters with a value of its type, as a person gives it."""
    kind = one.type_descriptor.annotation
    value = {int: "3", float: "1.5"}.get(kind) or next(iter(get_args(kind)), "last")
    if not isinstance(one, TyperOption):
        return (str(value),)
    return (one.opts[0],) if kind is bool else (one.opts[0], str(value))


@cache
def lines(words: tuple[str, ...]) -> some.SearchStrategy[list[str]]:
    """What may follow a command: its parameters with plain values and with any, words alone, and unknown words."""
    parameters = COMMANDS[words].params
    names = ["--help", *(name for one in parameters for name in (*one.opts, *one.secondary_opts))]
    alone = some.sampled_from([*names, *VALUES, "--no-such-option", "--"]).map(lambda word: (word,))
    pair = some.tuples(some.sampled_from(names), some.sampled_from(VALUES))
    usual = some.sampled_from([plain(one) for one in parameters] or [("last",)])
    rest = some.lists(alone | pair | pair.map(lambda both: ("=".join(both),)), max_size=1)
    found = some.tuples(some.lists(usual, max_size=3), rest).map(lambda both: [*both[0], *both[1]])
    return found.flatmap(some.permutations).map(lambda parts: list(chain.from_iterable(parts)))


@settings(max_examples=min(30, settings().max_examples))
@given(data=some.data())
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_what_is_called_directly_is_what_the_parser_gives(words: tuple[str, ...], data: some.DataObject) -> None:
    rest = data.draw(lines(words))
    found = called(words, rest)
    if found is not None:
        assert found == by_the_parser(words, rest)


@pytest.mark.parametrize(
    "line",
    [
        *("explain COMPILE_ERROR", "skill list --json", "skill search row --language triton", "notes softmax"),
        *("audit stale --days 30 --current ledger", "audit roofline --gpu=h200", "plan last", "doctor"),
        *("audit fast-p", "audit fast-p 1 1.5", "check a.py b.py --dtype fp16", "pipeline last a b --resume"),
        *("recommend --model a --model b --gpu h200 --max-ttft-ms 200.5 --limit 3", "kernel claims abc"),
    ],
)
def test_a_plain_command_is_called_directly(line: str) -> None:
    words = next(tuple(line.split()[:n]) for n in (2, 1) if tuple(line.split()[:n]) in COMMANDS)
    rest = line.split()[len(words) :]
    found = called(words, rest)
    assert found is not None
    assert found == by_the_parser(words, rest)


@pytest.mark.parametrize(
    "line",
    [
        *("explain", "explain a b", "explain --json --json a", "skill list --help", "recommend", "nothing"),
        *(
            "audit stale --days 0.5",
            "audit stale --days -1",
            "audit stale --current elsewhere",
            "verify last --quiet",
        ),
        *(
            "verify last --quiet",
            "recommend --model a --limit 0",
            "recommend --model a --limit 1001",
            "skill list --json=yes",
            "",
        ),
    ],
)
def test_what_is_not_plain_is_left_to_the_parser(line: str) -> None:
    assert direct_call(line.split()) is None
