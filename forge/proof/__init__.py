"""Checks one promotion from the artifact, the proof and the public key, without a workspace.

It needs only the standard library and `cryptography`: no database, no torch. It shares nothing with the code that
writes the ledger or signs its checkpoints.

- `check`: a `.tlog-proof` file against an artifact and a key
- `note`: C2SP signed notes and the keys that verify them
- `tree`: inclusion and consistency in an RFC 6962 Merkle tree
- `files`: the same, given files
- `python -m forge.proof`: the same as `forge verify-proof`, without Typer
"""
