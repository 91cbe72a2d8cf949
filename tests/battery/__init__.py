"""Whole runs that try the promise: COMPLETE only when it is true, and whenever it is."""
