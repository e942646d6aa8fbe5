"""Programs that write candidates. An author proposes; gates, clock and ledger are out of its reach."""

KIND_NAMES = ("search", "folders", "model", "command", "person")
"""Names of `KINDS` in `forge/authors/kinds.py`. They stand here for `--help`, which loads no author."""
