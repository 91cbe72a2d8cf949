"""Inputs of the proof: what decides what tests and checks say, found by what it is. Pure.

find      works the list out from commands and the tree before the run
model     an input, and the list that answers for any path
follow    from a command to what it executes; shell, make, recipes, tools_* are its languages
fixtures  what tests read and product code does not; product, leads, programs, shadows help it
changes   which changed paths are inputs, what needs no question, what is put back; kept_* by file
asked     whether the PRD itself wants a path changed
smallest  the smallest set of changes that matters
listing   the inputs of a task, and how they are shown
"""
