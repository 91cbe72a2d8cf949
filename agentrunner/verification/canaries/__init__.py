"""Canaries: a claimed test or program is made to fail, and has to be reported as failed.

claimed_tests   canaries of tests with names, by syntax; `word_canaries` without a grammar
script_canary   programs that decide by exit code; `own_assertions`, `table_rows` what they ask
fixture_canary  a claimed test without the file it compares with
"""
