"""Derives a ledger again from its bytes and compares. It shares no code with the writer."""
