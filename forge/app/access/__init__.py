"""Who may ask over HTTP and MCP: tokens, granted, listed and revoked."""
