"""Prints a nested document for people: one line for each fact, one table for each list of similar items."""

from collections.abc import Iterator, Mapping, Sequence

from forge.cli.output import emit_json, emit_table, shape_text

INTERVAL = frozenset({"ratio", "low", "high"})
"""Fields of a speedup with its interval, which is printed as one fact."""


def emit_document(title: str, document: Mapping[str, object]) -> None:
    """Print the facts by name, with `benchmark.seq` for a nested one, then each list as a table."""
    facts, lists = list[tuple[str, str]](), list[tuple[str, Sequence[Mapping[str, object]]]]()
    for name, value in (leaf for key, inner in document.items() for leaf in _leaves(key, inner)):
        text = fact_text(value)
        if text is not None:
            facts.append((name, text))
        elif isinstance(value, list):
            lists.append((name, value))
    emit_table(title, ("", ""), facts)
    for name, items in lists:
        columns = list(dict.fromkeys(key for item in items for key in item))
        emit_table(name, columns, [[fact_text(item.get(key)) for key in columns] for item in items])


def show_facts(document: Mapping[str, object], title: str, *, as_json: bool) -> None:
    """Print a flat document as JSON, or as a table of the facts that it has."""
    if as_json:
        emit_json(document)
    else:
        emit_document(title, document)


def _leaves(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield each fact and each list of table rows, with its full name."""
    if value is None:
        return
    if fact_text(value) is not None or _is_table(value):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}", inner)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(f"{name}.{place}", inner)


def _is_table(value: object) -> bool:
    rows = value if isinstance(value, list) else []
    return bool(rows) and all(isinstance(row, Mapping) and _is_flat(row) for row in rows)


def _is_flat(row: Mapping[str, object]) -> bool:
    return all(cell is None or fact_text(cell) is not None for cell in row.values())


def fact_text(value: object) -> str | None:
    """Return one fact as text; None if the value holds several facts."""
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.6g}"
        case int() | str():
            return str(value)
        case dict() if not value:
            return "none"
        case dict() if value.keys() == INTERVAL:
            return f"{value['ratio']:.3f}x, 95 % interval {value['low']:.3f} to {value['high']:.3f}x"
        case dict() if all(type(size) is int for size in value.values()):
            return shape_text(value)
        case list():
            plain = [text for text in map(fact_text, value) if text is not None]
            between = "; " if any(isinstance(one, Mapping) for one in value) else ", "
            return (between.join(plain) or "none") if len(plain) == len(value) else None
        case _:
            return None
