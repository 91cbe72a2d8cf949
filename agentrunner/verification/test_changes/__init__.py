"""Changes of tests that need no question: what follows from the task, told from the texts. Pure.

follow_ups        changes of tests and their data that only follow from what a PRD asks for
adapted_tests     existing tests as the PRD wants them, with `adapted_values` and `reworded_values`
added_tests       what a file of tests only has besides
removed_tests     tests that go with their code, or by name; `moves`: those that stand elsewhere
renamed_names     names that the work replaced everywhere; `followed_signatures` that take more
es_modules        the same file as an ES module
"""
