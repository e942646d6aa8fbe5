"""Decides whether an operation is judged well enough to be a task: mutants must be refused.

Their number is its score.
"""
