"""A worker, a sandbox and a planner of somebody else."""
