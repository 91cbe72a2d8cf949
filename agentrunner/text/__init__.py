"""Make text from outside harmless: secrets, terminal controls, broken Unicode."""
