"""Programs that write candidates. An author proposes; gates, clock and ledger are out of its reach."""
