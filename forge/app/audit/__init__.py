"""Questions about the recorded history, answered as plain rows with what they were counted over.

Every answer is read from `history.db` and, where it names evidence, from the ledger itself. Nothing is recorded.
"""
