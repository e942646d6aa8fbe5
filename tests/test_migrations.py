import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlmodel import SQLModel

from forge.ledger.schema import (
    SCHEMA_OBJECTS,
    SCHEMA_SHA256,
    fingerprint,
    migrate,
    migrations_folder,
    schema_rows,
)

ROOT = Path(__file__).parent.parent
MIGRATIONS = ROOT / "migrations"


@pytest.fixture
def migrated(tmp_path: Path) -> Path:
    path = tmp_path / "k.db"
    migrate(path)
    return path


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return ScriptDirectory.from_config(config)


def test_a_migrated_database_has_the_pinned_schema(migrated: Path) -> None:
    with closing(sqlite3.connect(migrated)) as connection:
        rows = schema_rows(connection)
        assert {name for _, name, _, _ in rows} == SCHEMA_OBJECTS
        assert fingerprint(rows) == SCHEMA_SHA256
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0003",)]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_migrating_again_changes_nothing(migrated: Path) -> None:
    migrate(migrated)
    with closing(sqlite3.connect(migrated)) as connection:
        assert fingerprint(schema_rows(connection)) == SCHEMA_SHA256


def test_there_is_one_line_of_revisions() -> None:
    assert scripts().get_heads() == ["0003"]
    assert scripts().get_bases() == ["0001"]


def test_no_migration_goes_back() -> None:
    for revision in scripts().walk_revisions():
        with pytest.raises(RuntimeError, match="forward only"):
            revision.module.downgrade()


def test_no_migration_rebuilds_a_table() -> None:
    """A batch operation copies a table and drops its triggers without a word."""
    files = [*MIGRATIONS.rglob("*.py"), *MIGRATIONS.rglob("*.mako")]
    assert files
    for path in files:
        assert not re.search(r"batch_alter_table|batch_op|recreate", path.read_text()), path


def test_autogenerate_sees_neither_the_ledgers_tables_nor_what_hangs_on_them(migrated: Path) -> None:
    source = (MIGRATIONS / "env.py").read_text().removesuffix("run()\n")
    names: dict[str, object] = {}
    exec(compile(source, "env.py", "exec"), names)
    engine = create_engine(f"sqlite:///{migrated}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": names["include_object"]})
        assert compare_metadata(context, SQLModel.metadata.__class__()) == []
        seen = compare_metadata(MigrationContext.configure(connection), SQLModel.metadata.__class__())
        assert {change[0] for change in seen} >= {"remove_table"}
    engine.dispose()


def test_the_alembic_command_cannot_reach_a_ledger() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with pytest.raises(RuntimeError, match="no connection"):
        command.upgrade(config, "head")


def test_alembic_finds_the_folder_by_pyproject() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert settings["alembic"]["script_location"] == "%(here)s/migrations"
    assert settings["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["path"] == "hatch_build.py"
    assert 'build_data["force_include"]["migrations"] = "forge/_migrations"' in (ROOT / "hatch_build.py").read_text()
    history = [sys.executable, "-m", "alembic", "history"]
    answer = subprocess.run(history, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "0003 (head)" in answer


def test_the_folder_is_found_in_a_checkout() -> None:
    assert migrations_folder() == MIGRATIONS


def test_an_installed_package_carries_its_migrations(tmp_path: Path) -> None:
    """The wheel's layout: `forge/_migrations`, and no checkout beside it."""
    site = tmp_path / "site % packages"
    ignored = shutil.ignore_patterns("__pycache__", "_migrations")
    for part in ("domain", "events", "ledger"):
        shutil.copytree(ROOT / "forge" / part, site / "forge" / part, ignore=ignored)
    for name in ("__init__.py", "errors.py"):
        shutil.copy(ROOT / "forge" / name, site / "forge" / name)
    shutil.copytree(MIGRATIONS, site / "forge" / "_migrations", ignore=ignored)
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r})\n"
        "from pathlib import Path\n"
        "from forge.ledger.schema import migrate, migrations_folder\n"
        f"assert migrations_folder() == Path({str(site)!r}, 'forge', '_migrations')\n"
        "migrate(Path('k.db').resolve())\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    with closing(sqlite3.connect(tmp_path / "k.db")) as connection:
        assert fingerprint(schema_rows(connection)) == SCHEMA_SHA256
