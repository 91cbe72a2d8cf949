"""Everything that knows git: private stores, snapshots, clones, the user's repository as data."""
