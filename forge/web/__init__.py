"""Web pages and the HTTP API, over `forge.app.desk`. It judges nothing, and builds and imports no candidate.

The process that serves runs no phase: workers are processes of their own.
"""
