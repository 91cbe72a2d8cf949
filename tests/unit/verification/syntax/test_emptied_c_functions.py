"""Functions of C that return at once."""

from agentrunner.verification.syntax.emptied_text_functions import emptied_in_text

OLD = b"int same(void)\n{\n    return 1;\n}\n"
NEW = b"""#include "shop.h"
#define MAX(a, b) { a }
struct line { int count; };

int same(void)
{
    /* one } */
    return 1;
}

static const char *name(int count)
{
    return count ? "}" : 0;
}

void put(struct line *line) { line->count = 1; }

int table[] = { 1, 2 };

int main(void) { return 0; }
"""


def test_what_was_added_gives_back_zero_and_all_else_stays() -> None:
    made = emptied_in_text(OLD, NEW, "c")
    assert made is not None
    lines = made.replace(b" static char * agentrunner_zero; return agentrunner_zero;", b"<1>")
    assert lines.replace(b"{ return; line", b"{<2> line") == NEW.replace(
        b"int count)\n{", b"int count)\n{<1>"
    ).replace(b"{ line->", b"{<2> line->")


def test_nothing_is_emptied_where_no_function_has_changed() -> None:
    assert emptied_in_text(OLD, b"// a comment { }\n" + OLD, "c") is None
    assert emptied_in_text(None, b"int main(void) { return 0; }\n", "c") is None


def test_only_new_functions_are_emptied_where_that_is_asked_for() -> None:
    changed = OLD.replace(b"1", b"2")
    assert emptied_in_text(OLD, changed, "c", added=True) is None
    made = emptied_in_text(OLD, changed + b"int more(void) { return 3; }\n", "c", added=True)
    assert made is not None and made.startswith(changed)
    assert b"return agentrunner_zero; return 3;" in made


def test_pointers_may_become_memory_full_of_zeros() -> None:
    made = emptied_in_text(None, b"char *text(int one)\n{\n    return all;\n}\n", "c", memory=True)
    assert made is not None and b"return (char *) __builtin_calloc(1, 4096);" in made
