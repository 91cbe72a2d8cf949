"""Adds up what calls cost: of a worker run, of a run, of a plan. No other package adds money up."""
