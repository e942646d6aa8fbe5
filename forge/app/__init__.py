"""Connects the packages into commands; only this package reads the environment and the clock and opens the ledger.

A module belongs here if it does what a command asks. It opens a workspace or the user's files, calls the layers
below, and returns plain data. A rule about evidence belongs to `pipeline`, a fold to `projections`, and text for a
terminal to `cli`.

- `workspace`: the ledger, run directories and registry on disk
- `phases`, `runs`, `tasks`, `briefs`: open runs and move them forward
- `decisions`, `recovery`, `restore`, `signing`: change history or the files beside it
- `phase_answer`, `ledger_answers`, `lookup_answer`, `kernels`, `audit`: answer questions as plain data
"""
