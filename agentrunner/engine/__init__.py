"""Runs from start to end: what they work with, their attempts, and looking at them afterwards."""
