"""Find tests and functions in source code, make them fail, empty them, compare them. Pure.

languages, tokens     what a file is written in: its syntax tree, or its tokens where there is none
test_finder           tests of a file by name; `scripts` JavaScript, `word_tests` without a grammar
functions, context    functions by name, what a test depends on; `text_functions` without a grammar
answers, name_scopes  what a function is handed and gives back; what names stand for, and where
edits                 changes of a source; `canary`, `ends`, `random_tests` make a test fail by them
emptied_functions     sources without the work; `stand_ins`, `raising_functions`, `mutants` likewise
asserts, substance    what tests assert; `native_asserts`, `script_asserts` by language
words, stated_names   names of code in a sentence, and those that it wants to have
silenced_warnings     code that tells tools to say nothing
"""
