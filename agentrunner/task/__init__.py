"""What a task is, how it is written down, and what is known of it while it runs."""
