"""A container per box, on any engine that speaks Docker's API."""
