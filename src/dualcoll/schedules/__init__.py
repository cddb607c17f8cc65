"""Sends of chunks: the discrete schedule that every planner makes and everything after takes (docs/semantics.md)."""
