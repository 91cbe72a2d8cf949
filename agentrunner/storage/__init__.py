"""What is kept on the disk: folders of runs and plans, logs, ledgers, locks."""
