"""Edits of a ledger by the owner of its files, each with what finds it: `docs/reference/edits.md` is made of them."""
