"""What callers over HTTP and MCP ask: the same few functions serve the pages, the API and the tools.

Each function takes a `View` of the workspace or opens it for one change, and a `Caller`, and returns plain data.
"""
