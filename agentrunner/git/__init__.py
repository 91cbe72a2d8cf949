"""Everything that knows git: private stores, snapshots, clones, and the user's repository read as data."""
