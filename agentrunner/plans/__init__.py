"""Plans: a tree of tasks that a conversation makes, changes and can undo."""
