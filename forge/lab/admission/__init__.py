"""Tries an operation before use: mutants must be refused and right answers accepted; computes its mutant score."""
