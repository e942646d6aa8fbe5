"""Takes a ledger's parts elsewhere and back: bundles, copies, and the blobs that events stand on."""
