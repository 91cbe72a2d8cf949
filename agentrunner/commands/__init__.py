"""The commands: each converts options to one call and shows one screen. cli.py is the index.

Only the module of the called command is imported. LangGraph and what is built on it are imported
only when a function needs them.
"""
