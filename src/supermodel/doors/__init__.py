"""Doors: other programs that call this one, each by its own call and with its own kind of result."""
