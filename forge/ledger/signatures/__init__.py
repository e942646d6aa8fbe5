"""Signs a ledger: keys, checkpoints and proofs, which show more than the file alone."""
