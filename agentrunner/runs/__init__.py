"""What is kept of a run: its folder, log, events, locks, ledger, snapshots and the index."""
