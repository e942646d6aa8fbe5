"""Finds places in CUDA device code: state that outlives a launch, launches by kernels, clocks in PTX.

Device code is the part in braces after `__global__` or `__device__`. Inline PTX is allowed there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forge.domain.source_finding import FindingKind
from forge.lab.triage.cpp_tokens import Token

_SPECIFIERS = frozenset({"__global__", "__device__", "__managed__"})
_CONSTANT = frozenset({"const", "constexpr", "__constant__", "__shared__", "extern"})
_ATTRIBUTES = frozenset(
    {"__align__", "alignas", "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__attribute__"}
)
"""Words whose parentheses aren't a function's parameters."""
_PTX_CLOCKS = ("%clock", "%globaltimer")
"""Registers of PTX that tell the time."""
_WORDS_AROUND = 4
"""Number of tokens before and after a specifier that are read. Chosen: a declaration such as `static __device__ const
unsigned int` has up to four words around one. A larger number reads a neighbour's words."""
Seen = tuple[FindingKind, Token, Token]


@dataclass(frozen=True)
class SpecifierUse:
    """The declaration of one specifier: a function's body, or a variable."""

    specifier: int
    body: range
    """Positions among the tokens; empty at the declaration's end if it has no body."""
    variable: bool


def device_parts(found: Sequence[Token]) -> list[SpecifierUse]:
    """Return every declaration for the device, without those inside another one or in a macro."""
    parts: list[SpecifierUse] = []
    end = 0
    for i, token in enumerate(found):
        if i >= end and token.kind == "word" and token.text in _SPECIFIERS and not _in_a_macro(found, i):
            parts.append(_declared(found, i))
            end = parts[-1].body.stop
    return parts


def scan_device(found: Sequence[Token], parts: Sequence[SpecifierUse]) -> Iterator[Seen]:
    """Yield every relevant place in device code."""
    for part in parts:
        if part.variable and not _is_constant(found, part.specifier):
            yield "state", found[part.specifier], found[part.specifier]
        for i in part.body:
            if found[i].text == "<<" and i + 1 in part.body and _is_launch(found[i], found[i + 1]):
                yield "threads", found[i], found[i + 1]
            if found[i].kind == "string" and any(clock in found[i].text for clock in _PTX_CLOCKS):
                yield "clock", found[i], found[i]


def _declared(found: Sequence[Token], specifier: int) -> SpecifierUse:
    """Read on to the body's brace, or to the declaration's end; tokens in parentheses don't end it."""
    depth, parameters = 0, False
    for i in range(specifier + 1, len(found)):
        text = found[i].text if found[i].kind == "sign" else ""
        if text == "(":
            depth += 1
            parameters |= found[i - 1].text not in _ATTRIBUTES
        elif text == ")":
            depth -= 1
        elif depth <= 0 and text == "{" and parameters:
            return SpecifierUse(specifier, range(i, _closing(found, i)), variable=False)
        elif depth <= 0 and text in {";", "=", "{", "}"}:
            return SpecifierUse(specifier, range(i, i), variable=text != "}" and (not parameters or text == "="))
    return SpecifierUse(specifier, range(len(found), len(found)), variable=False)


def _closing(found: Sequence[Token], opening: int) -> int:
    depth = 0
    for i in range(opening, len(found)):
        if found[i].kind == "sign":
            depth += {"{": 1, "}": -1}.get(found[i].text, 0)
            if depth == 0:
                return i + 1
    return len(found)


def _is_constant(found: Sequence[Token], specifier: int) -> bool:
    """Return whether a word near the specifier says that the variable is never written."""
    words = {token.text for token in found[specifier + 1 : specifier + 1 + _WORDS_AROUND]}
    for token in reversed(found[max(0, specifier - _WORDS_AROUND) : specifier]):
        if token.kind != "word":
            break
        words.add(token.text)
    return bool(words & _CONSTANT)


def _in_a_macro(found: Sequence[Token], i: int) -> bool:
    return any(token.kind == "directive" for token in found[max(0, i - _WORDS_AROUND) : i])


def _is_launch(first: Token, second: Token) -> bool:
    return second.text == "<" and second.offset == first.offset + len(first.text)
