"""Starts CLIs in sandboxes, for work or for planning: credential, way out, limits, process."""
