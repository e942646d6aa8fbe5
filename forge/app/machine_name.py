"""Names the machine behind an environment. It imports nothing heavy, so that an audit stays quick."""

import sqlite3

from forge.app.plain_events import HasEvents
from forge.domain.worker_name import worker_name


def node_of(connection: sqlite3.Connection, workspace: HasEvents, environment: str) -> str | None:
    """Return the name of the node or machine behind an environment; None for one that isn't described."""
    place = connection.execute("SELECT seq FROM environments WHERE env_sha256 = ?", (environment,)).fetchone()
    described = None if place is None else workspace.event(place[0])
    if described is None or described.type != "EnvironmentCaptured":
        return None
    captured = described.event["environment"]
    return worker_name(captured.get("node"), captured["host_sha256"])
