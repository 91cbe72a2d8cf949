"""Inputs of the proof: find the files that decide what tests and checks say. Pure.

finder           works out the list, before the run, from the commands and the tree
model            an input, and the list that answers for any path
tree, globs      what is searched, and patterns in it; `context` is what was found so far
executed_files   from a command to what it executes: `shell`, `interpreters`, `recipes`, `make`,
                 `cmake`; `inline_programs` in their texts
tools_python     what a tool collects and what configures it; so do `tools_js`, `tools_compiled`,
                 `tools_other`; `shadows`
programs         whether what runs is test or product, by what it refers to: `references`,
                 `product`, `called_code`, `helper_code`, `named_types`
fixtures         what tests read and product code does not
changes          which changed paths are inputs, which need no question, which are put back
kept_part        a file with its part of the proof as it was: `kept_packages`, `kept_compiled`,
                 `kept_tests`
wanted_changes   whether the PRD itself wants a path changed; `wanted_moves`,
                 `wanted_removals`, `wanted_tests`, by `words_of_change`
test_detection   words by which product code could notice that it is tested
minimal_set      the smallest set of changes that matters
"""
