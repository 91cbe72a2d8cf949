"""What is kept of a run, from its folder and log to its work tree. Whatever starts git is here."""
