"""Examines a tree when completion is asked for; adds graded proofs, findings and doubts.

proving        the whole examination, command by command; `examination` runs commands on its trees,
               `case` is one of these commands; `kept_runs`: what has ended where it was killed
run_prover     the same for a run, imported when a verdict first needs it
name_proof     commands whose tests have names (`turned_tests`: which of them turned green);
               `exit_proof` those that only have an exit code, with
               `new_checks` and `inline_canaries`
old_inputs     with inputs as they were; `unexplained_files`: changes that nothing explains
unloaded_tests what could not be loaded before, by its text
carried_tests  claimed tests as they were worded before, with `former_questions`
data_changes, packages, stale_builds  changed data, packages that are not the product's, builds
earlier_workers  what another task wrote, or a person allowed, proves nothing
code_removal   whether the worker's own test shows the work: it is `red_on_old_code` and without the
               `names_of_work`; `other_tests`: what such a test asks;
               `mutation` how much of the work tests cover
named_work     whether tests ask what the requirements name; `trees_without_work`: the new
               tree less; whether there is any says `change_alone`
work_for_tests work that is right only where tests run, or for them; so do `ambient_conditions`
               and `pinned_answers`
silenced_tools green as a tool or a program says nothing, or as its settings say so;
               `edited_tests`: as the work catches the test's error
change_alone   what the change shows without a test, by `inspection`
integrity      what the change replaced in the test tool's process
"""
