"""The ledger as a whole: copies, bundles, signatures, keys and proofs."""
