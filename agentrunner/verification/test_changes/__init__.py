"""Changes of tests that need no question: what follows from the task, told from the texts. Pure.

follow_ups        changes of tests and their data that only follow from what a PRD asks for: a name
                  that is replaced everywhere, a function that takes more, the same as an ES module
adapted_tests     existing tests as the PRD wants them, and the values in them
removed_tests     tests that go with their code, or by name, and what a file of tests only has
                  besides; `moves`: those that stand elsewhere
"""
