"""A worker and a sandbox of somebody else."""
