"""Inputs of the proof: find the files that decide what tests and checks say. Pure.

finder           works out the list, before the run, from the commands and the tree
model            an input, and the list that answers for any path
executed_files   from a command to what it executes; shell, make, recipes, tools_* know a language
fixtures         what tests read and product code does not; product, references, programs help it
changes          which changed paths are inputs, which need no question, which are put back
kept_part        a file with its part of the proof as it was; kept_* by kind of file
wanted_changes   whether the PRD itself wants a path changed; wanted_kinds, _removals, _tests
piped_commands   commands whose output a shell text reads; `file_readers` run nothing themselves
test_detection   words by which product code could notice that it is tested
minimal_set      the smallest set of changes that matters
"""
