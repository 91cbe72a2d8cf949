"""One file per test tool; none of them knows another."""
