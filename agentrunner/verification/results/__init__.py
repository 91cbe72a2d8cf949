"""Results of tests by name: what a runner reports, never only how many."""
