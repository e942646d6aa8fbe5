"""Keys, checkpoints and proofs: what vouches for a ledger beyond its own file."""
