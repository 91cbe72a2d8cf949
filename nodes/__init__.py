"""One file per node of the graph: state in, update and next node out.

A node gets the state and its dependencies (`deps.py`); the wrapper in `guarded.py` checks what
it returns. What each node may go to is the table in agentrunner/graph/builder.py.
"""
