"""Starts CLIs in sandboxes, whether they work or plan: credential, way out, limits, process."""
