"""What each command does: options in, one call, one screen out. cli.py is the index.

Only the module of the command that was called is imported; LangGraph and what is built on it wait
until a function needs them.
"""
