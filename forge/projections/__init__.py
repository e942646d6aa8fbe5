"""Derives tables and published files from the ledger's events; all of it can be rebuilt from the first event.

A module belongs here if it computes from recorded events alone: a fold, its tables, or a file rendered from them.
A fold is pure: it uses no clock, randomness, environment, files or network. `folds` is the index of the folds behind
`history.db`. `documents` renders the JSON files from its tables. `runs` is folded when a phase needs it, and
published nowhere.
"""
