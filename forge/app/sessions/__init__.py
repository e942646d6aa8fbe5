"""Sessions of authors in a workspace: opened, worked off, resumed, replayed, and told."""
