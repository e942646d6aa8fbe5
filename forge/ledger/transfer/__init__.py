"""Moves a ledger's parts to another place: bundles, backups, and the blobs that events need."""
