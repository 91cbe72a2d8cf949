"""Text that comes from outside made harmless: secrets, terminal controls, broken Unicode."""
