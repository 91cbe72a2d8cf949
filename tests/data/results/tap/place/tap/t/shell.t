1..2
ok 1 - a # b
not ok 2
