"""Every edit by its kind, and what finds it: `docs/reference/edits.md` and the tests are made of this."""

from tests.ledger.edits.appended import APPENDED
from tests.ledger.edits.copy import Edit
from tests.ledger.edits.files import BLOBS, RUNS
from tests.ledger.edits.forms import APPENDED_FORMS, STORED_FORMS
from tests.ledger.edits.histories import REWRITES, SIGNATURES, SWAPPED, TRUNCATION
from tests.ledger.edits.pages import PAGES
from tests.ledger.edits.published import PUBLISHED
from tests.ledger.edits.rows import ROWS
from tests.ledger.edits.schema import SCHEMA

EDITS: dict[str, tuple[Edit, ...]] = {
    "Rows: columns, payloads, order, deletion": ROWS,
    "The form of a value, in stored bytes": STORED_FORMS,
    "The form of a value, in an event appended with right hashes": APPENDED_FORMS,
    "Events appended with right hashes": APPENDED,
    "Truncation": TRUNCATION,
    "Rewrites of the whole": REWRITES,
    "Another ledger in its place": SWAPPED,
    "Checkpoints and keys": SIGNATURES,
    "Schema, triggers, tree, names, settings": SCHEMA,
    "Pages, header, log": PAGES,
    "Blobs": BLOBS,
    "Folders of sealed runs": RUNS,
    "What is published": PUBLISHED,
}
"""Kind -> its edits."""
