"""Examines a tree when completion is asked for; adds graded proofs, findings and doubts.

proving        the whole examination, command by command; `examination` runs commands on its trees
run_prover     the same for a run, imported when a verdict first needs it
name_proof     commands whose tests have names; `exit_proof` those that only have an exit code
old_inputs     with inputs as they were; `unexplained_files`: changes that nothing explains
unloaded_tests what could not be loaded before, by its text
carried_tests, searched_places, data_changes, set_up_again  tests, files, data, packages that change
code_removal   whether the worker's own test shows the work; `mutation` how much of it tests cover
named_work     whether tests ask what the requirements name; `trees_without_work`: the new tree less
work_for_tests work that is right only where tests run; `ambient_conditions`, `lasting_places`
silenced_tools, silent_programs  green as a tool or a program says nothing
change_alone   what the change shows without a test, by `inspection`; `left_out_tests` of its own
integrity      what the change replaced in the test tool's process
kept_runs      what has ended of an examination that was killed
"""
