"""Connects the packages into commands; only this package reads the environment and the clock and opens the ledger.

- `workspace`: the ledger, run directories and registry on disk
- `phases`, `runs`, `tasks`, `briefs`: open runs and move them forward
- `decisions`, `recovery`, `restore`, `signing`: change history or the files beside it
- `phase_answer`, `ledger_answers`, `lookup_answer`, `kernels`, `audit`: answer questions as plain data
"""
