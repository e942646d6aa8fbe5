"""Run directories on the disk: opened, sealed under a manifest, cleaned up after a crash."""
