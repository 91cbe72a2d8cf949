"""Reads what test tools report: the result of each test by name, never only totals."""
