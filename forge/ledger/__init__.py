"""The append-only history and the bytes it names.

Importing the package imports nothing; take what is needed from its module:

- `store`: `Ledger`, the only writer of history, and its reader
- `audit`: derives everything again from the raw rows; shares no code with `store`
- `blobs`: content-addressed bytes, written before the event that names them
- `runs`: run directories, sealed under a manifest
- `actors`: who may write what
- `batch`, `chain`, `table`: what is appended, how it is hashed, where it stands
- `schema`, `connection`, `create`, `failures`, `lock`: the database file
- `ids`: event ids and run ids' time order
"""
