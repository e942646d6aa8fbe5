"""Renders the published JSON files from the tables of `history.db`: whole, canonical, and only if they change."""

import sqlite3

import orjson

from forge.domain.published_files import MODELS_FILE
from forge.projections import leaderboard, snapshot, versions
from forge.projections.catch_up import Cursor
from forge.projections.fold import Position
from forge.projections.history_version import PROJECTOR_VERSION

FILE = "verified_kernels.json"
SCHEMA_VERSION = 1
"""Version of the form of `verified_kernels.json`."""
ENTRIES = "SELECT entry FROM kernel_documents ORDER BY kernel_id"
ENTRY = "SELECT entry FROM kernel_documents WHERE kernel_id = ?"
LOOKUPS = """
    SELECT op, gpu, dtype, lookup FROM kernels JOIN kernel_documents USING (kernel_id)
    ORDER BY op, gpu, dtype, kernel_id
"""
"""Query for what a lookup answers, kernel by kernel within its slot."""
DESCRIBED = "SELECT op, description_sha256, reference_sha256 FROM operations ORDER BY op"
MODELS_SCHEMA_VERSION = 1
MEASURED_MODELS = "SELECT document FROM model_measurements ORDER BY seq"
SEEN_GPUS = "SELECT DISTINCT gpu, gpu_arch FROM environments WHERE gpu IS NOT NULL"


def render(connection: sqlite3.Connection, cursor: Cursor) -> dict[str, bytes]:
    """Return every document of the registry, by its path in kernel_registry/; the pointer is last.

    All but the pointer name the newest event that changed them, so their bytes stay the same while no kernel changes.
    """
    gpus = snapshot.architectures(connection.execute(SEEN_GPUS))
    lookup = snapshot.render(connection.execute(LOOKUPS), gpus, connection.execute(DESCRIBED))
    name, digest = snapshot.named(lookup)
    ranked = [leaderboard.RankedKernel(*row) for row in connection.execute(leaderboard.RANKED)]
    lines = [versions.Version(*row) for row in connection.execute(versions.VERSIONS)]
    return {
        leaderboard.FILE: leaderboard.render(ranked, cursor.registry),
        versions.FILE: versions.render(lines, cursor.registry),
        FILE: _verified_kernels(connection, cursor.registry),
        name: lookup,
        **_models(connection, cursor.registry),
        snapshot.POINTER: snapshot.pointer_to(digest, cursor.head),
    }


def _verified_kernels(connection: sqlite3.Connection, position: Position) -> bytes:
    return orjson.dumps(
        {
            "schema_version": SCHEMA_VERSION,
            "projector_version": PROJECTOR_VERSION,
            "ledger": position.document(),
            "kernels": _fragments(connection, ENTRIES),
        },
        option=orjson.OPT_SORT_KEYS,
    )


def _models(connection: sqlite3.Connection, position: Position) -> dict[str, bytes]:
    measured = _fragments(connection, MEASURED_MODELS)
    if not measured:
        return {}
    document = {"schema_version": MODELS_SCHEMA_VERSION, "ledger": position.document(), "measurements": measured}
    return {MODELS_FILE: orjson.dumps(document, option=orjson.OPT_SORT_KEYS)}


def _fragments(connection: sqlite3.Connection, query: str) -> list[orjson.Fragment]:
    return [orjson.Fragment(text) for (text,) in connection.execute(query)]
