"""Inputs of the proof: find the files that decide what tests and checks say. Pure.

find works out the list from the commands and the tree before the run model an input, and the list
that answers for any path follow from a command to what it executes; shell, make, recipes, tools_*
know one language each fixtures what tests read and product code does not; product, leads, programs,
shadows help it changes which changed paths are inputs, which need no question, which are put back;
kept_* by file asked whether the PRD itself wants a path changed smallest the smallest set of
changes that matters listing the inputs of a task, and how they are shown
"""
