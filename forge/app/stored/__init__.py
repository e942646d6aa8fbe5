"""What a workspace keeps besides its ledger: the policy, runs as documents, what is published."""
