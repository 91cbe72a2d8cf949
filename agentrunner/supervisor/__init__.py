"""Worker processes that outlive us: the supervisor beside each, and our side of it."""
