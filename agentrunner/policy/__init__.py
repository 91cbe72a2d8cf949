"""Policies: limits that no task on this machine may exceed."""
