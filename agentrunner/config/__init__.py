"""What a task is and how it is written down: files, options and settings, validated once."""
