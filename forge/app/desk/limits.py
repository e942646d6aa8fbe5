"""Limits of what is submitted over HTTP and MCP. They stand alone, so that listing the tools is quick."""

FILE_LIMIT_BYTES = 256 * 1024
"""Largest file of a candidate over HTTP or MCP, in bytes. Chosen: half of the domain's limit, since the server holds
five of them in memory for each caller."""
LONGEST_KEY = 200
"""Largest length of an idempotency key, in characters. Chosen: a UUID has 36. Each key is stored with what it asked
for."""
