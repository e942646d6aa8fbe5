"""Answers questions about the recorded history: plain rows, and what they were counted over.

Every answer is read from `history.db` and, if it names evidence, from the ledger itself. Nothing is recorded.
"""
