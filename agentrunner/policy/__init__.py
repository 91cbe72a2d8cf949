"""What no task on this machine may go beyond."""
