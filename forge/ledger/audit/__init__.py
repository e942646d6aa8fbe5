"""Derives a ledger again from its bytes and doubts the writer: shares no code with it."""
