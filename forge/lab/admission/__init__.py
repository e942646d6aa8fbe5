"""Whether an operation is judged well enough to be asked about: mutants, which must be refused, and their score."""
