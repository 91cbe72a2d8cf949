"""The saved state of a run: what is known of it while it runs. Pure."""
