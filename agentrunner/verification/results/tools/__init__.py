"""One reader per test tool, each in a file of its own; none of them knows another."""
