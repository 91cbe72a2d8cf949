"""Changes of tests that need no question: what follows from the task, told from the texts. Pure.

follow_ups        changes of tests and their data that only follow from what a PRD asks for: a name
                  that is replaced everywhere (`renamed_names`), a function that takes more
                  (`signatures`), other imports (`moved_imports`)
adapted_tests     existing tests as the PRD wants them: `stated_values` and `reworded_texts` in them
removed_tests     tests that go with their code, or by name, and what a file of tests only has
                  besides; `moves`: those that stand elsewhere
"""
