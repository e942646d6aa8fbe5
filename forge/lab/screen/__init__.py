"""Screens an author's drafts: builds them, asks whether they are right, and ranks them by time. It judges nothing."""
