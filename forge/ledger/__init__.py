"""Keeps the append-only history, and the bytes that its events name.

Importing the package imports nothing. Import what you need from its module:

- `store`: `Ledger`, the only writer of history, and its reader
- `batch`, `writing`, `reading`, `replay`, `chain`, `statements`, `table`: what is appended, how it is hashed and how
  it is read again
- `transaction`, `lock`, `own_file`, `connection`, `opening`, `create`, `schema`: the database file, and who may write
  to it now
- `tree`, `merkle`: the Merkle tree over the events' hashes, kept in the transaction that appends
- `blobs`: content-addressed bytes, written before the event that names them
- `actors`: which actors may write which events
- `crash_marker`: which processes are at work, and whether one of them was killed
- `durable`, `failures`: how bytes reach the disk, and the errors if they don't
- `ids`: event ids
- `audit`: derives everything again from the raw rows; shares no code with the writer
- `signatures`: keys, checkpoints and proofs
- `transfer`: backups, and bundles of events for another machine
- `runs`: run directories, their manifests, and the cleanup after a crash
"""
