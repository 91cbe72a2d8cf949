"""Workers: adapters that turn an order into a command line and its output into facts."""
