"""Connects the packages into commands; only this package reads the environment and the clock and opens the ledger.

A module belongs here if it does what a command asks. It opens a workspace or the user's files, calls the layers
below, and returns plain data. A rule about evidence belongs to `pipeline`, a fold to `projections`, and text for a
terminal to `cli`.

- `workspace`: the ledger, run directories and registry on disk; `stored` has what it is built on
- `user`, `access`: who asks, in which workspace, with which paths and tokens
- `tasks`, `runs`, `phases`: open runs, move them forward, and say where they stand
- `work`, `machine`: who asks for work, and what does it
- `kernels`, `lessons`: what came of it, looked up, doubted, withdrawn
- `ledger`: the ledger as a whole, its copies and keys, and what a kill left
- `audit`, `claims`, `recommend`: answer questions over the history
- `sessions`, `solve`: authors at work, on one kernel and on a whole module
- `desk`: what callers over HTTP and MCP ask
- `check`, `models`, `demo`: what needs no run: one kernel, a whole model, a demonstration
"""
