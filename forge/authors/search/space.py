"""The space of a template: its parameters, their values, and the constraints between them.

A space is never listed. It may have more settings than memory holds, so settings are drawn, and neighbours are made,
one at a time.
"""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import orjson
from pydantic import Field, ValidationError

from forge.authors.search.constraint import Constraint, parse_constraint
from forge.domain.authoring import ParameterValue, Setting
from forge.domain.candidate import Identifier
from forge.domain.digest import Value
from forge.domain.misfit import misfit
from forge.errors import UsageError

SPACE_FILE = "space.json"
SPACE_LIMIT_BYTES = 64 * 1024
"""Size of space.json in bytes, at most. The largest that ships has less than one kilobyte."""
DRAWS = 400
"""Number of draws of one setting before a random walk takes their place. If one setting in a hundred meets the
constraints, all 400 miss with a chance of 1.8 %."""
WALK = 64
"""Number of steps of that walk, each to a neighbour that meets the constraints. Chosen; each step costs a check of
the constraints at every neighbour. A longer walk ends farther from the template's own setting."""


class ParameterText(Value):
    """One parameter, as space.json has it."""

    name: Identifier
    values: Annotated[tuple[ParameterValue, ...], Field(min_length=1, max_length=64)]
    """Values that may be tried, in an order in which neighbours are alike."""
    meaning: Annotated[str, Field(max_length=300)] = ""


class SpaceText(Value):
    """The content of space.json."""

    parameters: Annotated[tuple[ParameterText, ...], Field(min_length=1, max_length=32)]
    constraints: Annotated[tuple[str, ...], Field(max_length=32)] = ()
    """Comparisons that a setting must meet, such as `BLOCK % WARPS == 0`."""


@dataclass(frozen=True)
class Space:
    """A parsed space. `own` is the template's own setting, which is always part of it."""

    values: Mapping[str, tuple[ParameterValue, ...]]
    constraints: tuple[Constraint, ...]
    own: Setting

    @property
    def points(self) -> int:
        """Number of combinations of values, with those that the constraints refuse."""
        return math.prod(map(len, self.values.values()))

    def allows(self, setting: Setting) -> bool:
        """Return whether a setting meets every constraint."""
        return all(one.holds(setting.values) for one in self.constraints)

    def draw(self, rng: random.Random) -> Setting:
        """Draw a setting that meets the constraints."""
        for _ in range(DRAWS):
            drawn = Setting(values={name: rng.choice(values) for name, values in self.values.items()})
            if self.allows(drawn):
                return drawn
        at = self.own
        for _ in range(WALK):
            at = rng.choice([at, *self.neighbours(at)])
        return at

    def neighbours(self, setting: Setting) -> Iterator[Setting]:
        """Yield each setting that differs by one step of one parameter and meets the constraints."""
        for name, values in self.values.items():
            place = _place(values, setting.values[name])
            for step in (place - 1, place + 1):
                if 0 <= step < len(values):
                    moved = Setting(values={**setting.values, name: values[step]})
                    if self.allows(moved):
                        yield moved


def _place(values: tuple[ParameterValue, ...], value: ParameterValue) -> int:
    """Return where a value stands; True isn't 1, and 1.0 isn't 1."""
    return next(place for place, one in enumerate(values) if same(one, value))


def same(one: ParameterValue, other: ParameterValue) -> bool:
    """Return whether two values are the same, type included."""
    return type(one) is type(other) and one == other


def parse_space(untrusted: bytes, own: Mapping[str, ParameterValue]) -> Space:
    """Read space.json. `own` has the template's values of all names that could be parameters.

    Raise UsageError for anything but a space that holds the template's own setting.
    """
    text = _parse_text(untrusted)
    values = {one.name: one.values for one in text.parameters}
    if len(values) != len(text.parameters):
        names = [one.name for one in text.parameters]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{SPACE_FILE}: the parameter {twice!r} is given twice: expected each name once")
    for name, allowed in values.items():
        if name not in own:
            raise UsageError(
                f"{SPACE_FILE}: kernel.py has no constant {name!r}: expected `{name} = <value>` at module level, "
                f"or `#define {name} <value>` or `constexpr int {name} = <value>;` in its C++ or CUDA text",
                hint=f"add the constant to kernel.py, or take the parameter out of {SPACE_FILE}",
            )
        if any(same(one, other) for at, one in enumerate(allowed) for other in allowed[:at]):
            raise UsageError(f"{SPACE_FILE}: parameter {name!r} has a value twice; expected each value once")
        if any(not _bounded(one) for one in allowed):
            raise UsageError(f"{SPACE_FILE}: parameter {name!r} has a number past 2^53; expected smaller ones")
        if not any(same(one, own[name]) for one in allowed):
            raise UsageError(
                f"{SPACE_FILE}: kernel.py has {name} = {own[name]!r}, which isn't among the values "
                f"{list(allowed)!r}; expected the template's own value among them"
            )
    constraints = tuple(parse_constraint(one, frozenset(values)) for one in text.constraints)
    space = Space(values, constraints, Setting(values={name: own[name] for name in values}))
    broken = next((one for one in constraints if not one.holds(space.own.values)), None)
    if broken is not None:
        raise UsageError(
            f"{SPACE_FILE}: the template's own setting ({space.own}) doesn't meet {broken.text!r}; expected a space "
            "that holds it, so that there is a setting to start from",
            hint="loosen the constraint, or change the constants of kernel.py",
        )
    return space


def _bounded(value: ParameterValue) -> bool:
    return isinstance(value, str) or abs(value) <= 2**53


def _parse_text(untrusted: bytes) -> SpaceText:
    if len(untrusted) > SPACE_LIMIT_BYTES:
        raise UsageError(f"{SPACE_FILE} has more than {SPACE_LIMIT_BYTES} bytes: expected fewer values")
    try:
        document = orjson.loads(untrusted)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{SPACE_FILE}: not JSON ({error}); expected an object with parameters") from error
    if not isinstance(document, dict):
        raise UsageError(f"{SPACE_FILE}: expected an object with parameters, got {type(document).__name__}")
    try:
        return SpaceText.model_validate(document, strict=False)
    except ValidationError as error:
        raise UsageError(f"{SPACE_FILE}: {misfit(error, SpaceText)}") from error
