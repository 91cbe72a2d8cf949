"""What a planner sees of the code: changes, sources of red tests, and what it looks at itself.

All of it comes from snapshots, never from the folder that workers write to, and what git ignored
before the run is in none of them.
"""
