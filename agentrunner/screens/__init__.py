"""What people see: pure functions from events and results to text of at most 88 cells a line.

All text from a model, a worker, a repository or a task file is sanitised here, at the last moment
before it is shown. The only escape sequences are colours (SGR); with NO_COLOR or without a terminal
there are none.
"""
