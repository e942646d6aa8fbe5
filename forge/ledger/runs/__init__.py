"""Opens run directories, seals them under a manifest, and cleans up after a crash."""
