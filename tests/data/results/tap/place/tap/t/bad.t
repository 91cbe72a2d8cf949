not ok 1 - sums
not ok 2 - old # TODO known
#   Failed (TODO) test 'old'
#   at t/bad.t line 3.
ok 3 - same
ok 4 - same
1..4
