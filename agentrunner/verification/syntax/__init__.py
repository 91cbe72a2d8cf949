"""Find tests and functions in source code, make them fail, empty them, compare them. Pure.

languages, tokens     what a file is written in: its syntax tree, or its tokens where there is none
test_finder           tests of a file by name, as `test_spans`; `scripts` in JavaScript,
                      `word_tests` without a grammar, `regions` inside product files
functions, context    functions by name, what a test depends on; `text_functions` without a grammar;
                      `heads` of all, `definitions` with what they need
calls, name_scopes    what names a test uses, and what they stand for: `imports`
edits                 changes of a source; `canary`, `ends`, `failing_assertions`,
                      `stated_literals`, `tables` make tests fail by them
emptied_functions     sources without the work, or a part of it; `emptied_text_functions`;
                      `stand_ins` and `mutants` likewise
answers               what functions give back: always the same, or what is `pinned` to tests,
                      by `conditions` of what surrounds them, `comparisons` with literals,
                      `taken_literals` wherever they stand
asserts, assertions   what tests assert; `native_asserts`, `script_asserts` by language; `values`,
                      `asked_values`, `alternatives` of it;
                      `asked_again` asks with values once more;
                      `replayed_assertions` fail once more as they did
code_equality         sources that say the same; `change_beside` what was left alone, by
                      `plain_code`
words                 names of code in a sentence, and those that it wants to have
refusals              how code says no: errors, exit codes, answers
silenced_warnings     code that tells tools to say nothing, or keeps them from looking
"""
