"""The task and how it is written down: task files, options and settings, validated once."""
