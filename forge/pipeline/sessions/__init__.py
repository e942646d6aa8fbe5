"""The loop of a session: which step comes next, what it may cost, and when it ends; over a ledger or a transcript."""
