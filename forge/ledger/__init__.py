"""The append-only history and the bytes it names.

Importing the package imports nothing; take what is needed from its module:

- `store`: `Ledger`, the only writer of history, and its reader
- `audit`, `audit_*`: derives everything again from the raw rows; shares no code with the writer
- `tree`, `merkle`: the Merkle tree over the events' hashes, kept in the transaction that appends
- `checkpoints`, `keyring`, `signing`: signs size and root, and refuses to contradict what was signed before
- `proving`: writes the proof of one event; `forge.proof` checks it
- `blobs`: content-addressed bytes, written before the event that names them
- `runs`, `manifest`: run directories, and what is said about each file when they are sealed
- `actors`: who may write what
- `batch`, `writing`, `reading`, `chain`, `table`: what is appended, how it is hashed, where it stands
- `schema`, `connection`, `opening`, `create`, `lock`: the database file
- `presence`, `debris`: who is at work, whether somebody was killed, and what the dead left
- `copies`: the database as it was at one moment, blobs and run folders, for backups
- `bundle`, `named`, `exporting`: a ledger's events in one file, for another machine
- `checking`, `importing`: a stranger's bundle, believed only when all of it holds, and kept apart from our own rows
- `durable`, `failures`: how bytes reach the disk, and what is said when they don't
- `ids`: event ids
"""
