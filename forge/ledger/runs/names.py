"""Names of runs, and of their folders."""

import re
from datetime import UTC, datetime

from forge.errors import IntegrityError

CAS = "cas"
"""Folder of the blobs, beside the run directories."""
BRIEFS = "briefs"
"""Folder of copies of briefs, beside the run directories: a run's own folder is renamed when the run is sealed."""
OPEN_PREFIX = ".tmp-"
"""Prefix of the folder of a run that isn't sealed."""
RUN_ID = r"[0-9]{8}T[0-9]{6}_[a-z][a-z0-9_]{0,63}_[a-z0-9]{1,40}_[0-9a-f]{6}"
"""Pattern of a run id; `run_id` says what its parts are."""


def run_id(now: datetime, op: str, gpu: str, random_hex: str) -> str:
    """Return `<yyyymmddTHHMMSS>_<op>_<gpu>_<6 hex>`, in UTC; raise IntegrityError if a part is invalid."""
    if now.tzinfo is None:
        raise IntegrityError(f"the clock gave {now!r}: expected a time with its zone")
    return require_run_id(f"{now.astimezone(UTC):%Y%m%dT%H%M%S}_{op}_{gpu}_{random_hex}")


def is_run_id(name: str) -> bool:
    """Return True if a name has the form of a run id."""
    return re.fullmatch(RUN_ID, name) is not None


def require_run_id(text: str) -> str:
    """Return a run id; raise IntegrityError if it has another form."""
    if not is_run_id(text):
        raise IntegrityError(f"bad run id {text!r}: expected <yyyymmddTHHMMSS>_<operation>_<gpu>_<6 hex digits>")
    return text
