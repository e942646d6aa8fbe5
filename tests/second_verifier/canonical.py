"""The one JSON text of a value, as docs/reading-the-ledger.md says it."""

import json


def canonical(value):
    """The one text, as the page says it."""
    return "".join(_pieces(value)).encode()


def _pieces(value):
    if isinstance(value, dict):
        yield "{"
        for place, key in enumerate(sorted(value)):
            yield ("," if place else "") + json.dumps(key, ensure_ascii=False) + ":"
            yield from _pieces(value[key])
        yield "}"
    elif isinstance(value, list):
        yield "["
        for place, one in enumerate(value):
            yield "," if place else ""
            yield from _pieces(one)
        yield "]"
    else:
        yield _number(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _number(value):
    digits, _, exponent = repr(value).partition("e")
    if not exponent:
        return digits
    power = int(exponent)
    if power == -5:
        sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
        return f"{sign}0.0000{digits.replace('.', '')}"
    return f"{digits}e{power:+d}" if power > 0 else f"{digits}e{power}"
