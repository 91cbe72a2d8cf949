"""Sandboxes: where commands run. This package knows nothing about tasks."""
