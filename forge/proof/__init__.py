"""What a stranger needs to check one promotion: the artifact, the proof, the public key, and nothing of ours.

Standard library and `cryptography` only; no workspace, no database, no torch. Nothing here is shared with the code
that writes the ledger or signs its checkpoints.

- `check`: a `.tlog-proof` file against an artifact and a key
- `note`: C2SP signed notes and the keys that verify them
- `tree`: inclusion and consistency in an RFC 6962 Merkle tree
- `files`: the same, given files
- `python -m forge.proof`: the same as `forge verify-proof`, without Typer
"""
