"""Sessions of authors in a workspace: opened, run, resumed, replayed, and shown."""
