"""Runs from start to end: starting and driving them, their attempts, and queries afterwards."""
