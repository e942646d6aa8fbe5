"""The append-only history and the bytes it names.

Importing the package imports nothing; take what is needed from its module:

- `store`: `Ledger`, the only writer of history, and its reader
- `audit`: derives everything again from the raw rows; shares no code with `store`
- `blobs`: content-addressed bytes, written before the event that names them
- `runs`, `manifest`: run directories, and what is said about each file when they are sealed
- `actors`: who may write what
- `batch`, `writing`, `reading`, `chain`, `table`: what is appended, how it is hashed, where it stands
- `schema`, `connection`, `opening`, `create`, `lock`: the database file
- `durable`, `failures`: how bytes reach the disk, and what is said when they don't
- `ids`: event ids
"""
