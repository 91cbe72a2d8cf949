"""One file per node of the graph: state in, update and next node out.

A node gets the state and its dependencies (`deps.py`); the wrapper in `guarded.py` checks what it
returns. The nodes that may follow each one are in ROUTES of agentrunner/graph/builder.py.
"""
