"""Reads a domain from one line of text, as `hidden_size <= 65536, m % 128 == 0, n % group == 0`."""

import re
from collections.abc import Collection

from pydantic import ValidationError

from forge.domain.kernel_domain import Divisible, KernelDomain, NotAbove, ProductLimit, SizeRelation
from forge.domain.misfit import misfit
from forge.errors import UnknownName, UsageError

FORMS = (
    "axis >= N, axis <= N, axis % N == 0, axis in N|N, axis % axis == 0, axis <= axis, axis * axis <= N, "
    "elements <= N, layouts in NAME|NAME, alignment == N"
)
"""Conditions that a domain may have, as they are written."""
_AXIS, _NUMBER = r"[a-z][a-z0-9_]{0,31}", r"[0-9]{1,19}"
_LEAST = re.compile(rf"({_AXIS})\s*>=\s*({_NUMBER})")
_MOST = re.compile(rf"({_AXIS})\s*<=\s*({_NUMBER})")
_MULTIPLE = re.compile(rf"({_AXIS})\s*%\s*({_NUMBER})\s*==\s*0")
_VALUES = re.compile(rf"({_AXIS})\s+in\s+({_NUMBER}(?:\s*\|\s*{_NUMBER})*)")
_DIVISIBLE = re.compile(rf"({_AXIS})\s*%\s*({_AXIS})\s*==\s*0")
_NOT_ABOVE = re.compile(rf"({_AXIS})\s*<=\s*({_AXIS})")
_PRODUCT = re.compile(rf"({_AXIS}(?:\s*\*\s*{_AXIS})+)\s*<=\s*({_NUMBER})")
_ELEMENTS = re.compile(rf"elements\s*<=\s*({_NUMBER})")
_LAYOUTS = re.compile(r"layouts\s+in\s+([a-z_]+(?:\s*\|\s*[a-z_]+)*)")
_ALIGNMENT = re.compile(rf"alignment\s*==\s*({_NUMBER})")
_OF_ONE_AXIS = ((_LEAST, "least"), (_MOST, "most"), (_MULTIPLE, "multiple_of"))
TEXT_LIMIT = 2000
"""Largest length of a domain's text, in characters. Chosen; it bounds what a candidate can make Forge parse."""


def parse_domain(untrusted_text: str, axes: Collection[str]) -> KernelDomain:
    """Return the domain that a text describes; raise UsageError for unknown axes and for contradictions."""
    if len(untrusted_text) > TEXT_LIMIT:
        raise UsageError(f"a domain of {len(untrusted_text)} characters: expected at most {TEXT_LIMIT}")
    sizes: dict[str, dict[str, object]] = {}
    relations: list[SizeRelation] = []
    others: dict[str, object] = {}
    for item in (part.strip() for part in untrusted_text.split(",")):
        if not (_take_other(item, others) or _take_sizes(item, sizes) or _take_relation(item, relations)):
            raise UsageError(f"bad domain condition {item[:80]!r}: expected {FORMS}")
    document = {"axes": sizes, "relations": [one.model_dump() for one in relations], **others}
    try:
        domain = KernelDomain.model_validate(document)
    except ValidationError as error:
        raise UsageError(f"bad domain {untrusted_text!r}: {misfit(error, KernelDomain)}") from error
    unknown = next((axis for axis in domain.named_axes if axis not in axes), None)
    if unknown is not None:
        raise UnknownName("domain axis", unknown, list(axes))
    return domain


def _take_other(item: str, others: dict[str, object]) -> bool:
    """Take a condition that isn't about one axis; return False if it is none."""
    if match := _ELEMENTS.fullmatch(item):
        _put(others, "most_elements", int(match[1]), item)
    elif match := _LAYOUTS.fullmatch(item):
        _put(others, "layouts", [one.strip() for one in match[1].split("|")], item)
    elif match := _ALIGNMENT.fullmatch(item):
        _put(others, "alignment_bytes", int(match[1]), item)
    else:
        return False
    return True


def _take_sizes(item: str, sizes: dict[str, dict[str, object]]) -> bool:
    """Take a condition on the size of one axis; return False if it is none."""
    for pattern, field in _OF_ONE_AXIS:
        if match := pattern.fullmatch(item):
            _put(sizes.setdefault(match[1], {}), field, int(match[2]), item)
            return True
    if match := _VALUES.fullmatch(item):
        _put(sizes.setdefault(match[1], {}), "values", [int(one) for one in match[2].split("|")], item)
        return True
    return False


def _take_relation(item: str, relations: list[SizeRelation]) -> bool:
    """Take a relation between sizes; return False if it is none."""
    if match := _DIVISIBLE.fullmatch(item):
        relations.append(Divisible(axis=match[1], by=match[2]))
    elif match := _NOT_ABOVE.fullmatch(item):
        relations.append(NotAbove(axis=match[1], other=match[2]))
    elif match := _PRODUCT.fullmatch(item):
        axes = tuple(axis.strip() for axis in match[1].split("*"))
        try:
            relations.append(ProductLimit(axes=axes, most=int(match[2])))
        except ValidationError as error:
            raise UsageError(f"bad domain condition {item!r}: {misfit(error, ProductLimit)}") from error
    else:
        return False
    return True


def _put(fields: dict[str, object], name: str, value: object, item: str) -> None:
    if name in fields:
        raise UsageError(f"the domain condition {item!r} is given twice: expected each once")
    fields[name] = value
