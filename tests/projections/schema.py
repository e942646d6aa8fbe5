"""Writes `schema.sql` out from the tables' declarations: python -m tests.projections.schema."""

from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from forge.projections.schema import FILE
from forge.projections.tables import TABLES

DIALECT = sqlite.dialect()
NOTE = "-- Written from tables.py: python -m tests.projections.schema\n"


def declared() -> str:
    """Every table with its indexes, by name."""
    statements: list[str] = []
    for _, table in sorted(TABLES.metadata.tables.items()):
        made = [CreateTable(table), *map(CreateIndex, sorted(table.indexes, key=lambda index: str(index.name)))]
        statements += (str(one.compile(dialect=DIALECT)) for one in made)
    return NOTE + "".join(f"{_tidy(one)};\n" for one in statements)


def _tidy(statement: str) -> str:
    """Without the spaces and lines that say nothing."""
    lines = (line.strip() for line in statement.splitlines() if line.strip())
    return "\n".join(line if line.startswith(("CREATE", ")", "WITHOUT")) else f"    {line}" for line in lines)


if __name__ == "__main__":
    FILE.write_text(declared(), encoding="utf-8")
