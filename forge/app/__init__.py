"""The composition root: the only reader of the environment and the clock; opens the ledger, drives the phases.

`workspace` is what stands on disk, `phases` moves a run forward, `reads` answers questions.
"""
