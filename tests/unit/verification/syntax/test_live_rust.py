"""Rust: canaries fail under their own names, and all that is made compiles without a warning."""

from __future__ import annotations

import re
from pathlib import Path

from agentrunner.verification.syntax.emptied_functions import empty_functions
from agentrunner.verification.syntax.mutants import mutants
from agentrunner.verification.syntax.regions import with_regions_of
from tests.unit.verification.syntax.live import canaries, combined, halves, need, ran, red

SOURCE = b"""#![deny(warnings)]
use std::fmt::Write;

pub const RATE: u32 = 2;

pub fn total(items: &[u32], twice: bool) -> u32 {
    let mut found = 0;
    for item in items {
        if *item > 0 && *item < 100 {
            found += item;
        }
    }
    if twice {
        return found * RATE;
    }
    found
}

pub fn name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("no name".to_string());
    }
    let mut out = String::new();
    write!(out, "{}", text.to_uppercase()).map_err(|e| e.to_string())?;
    Ok(out)
}

pub fn names() -> impl Iterator<Item = String> {
    vec!["a", "b"].into_iter().map(|x| x.to_string())
}

pub struct Cart {
    pub items: Vec<u32>,
}

impl Cart {
    pub fn size(&self) -> usize {
        self.items.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain() {
        assert_eq!(total(&[1, 2], false), 3, "the message {}", 3);
    }

    #[test]
    fn early() {
        if total(&[], true) == 0 {
            assert!(total(&[1], true) == 2);
            return;
        }
        unreachable!();
    }

    #[test]
    fn result() -> Result<(), String> {
        assert_eq!(name("a")?, "A".to_string());
        Ok(())
    }

    #[test]
    fn branches() -> Result<(), String> {
        assert_eq!(names().collect::<Vec<_>>(), vec!["a".to_string(), "b".to_string()]);
        if total(&[1], false) == 1 { Ok(()) } else { Err("no".into()) }
    }

    #[test]
    fn tail() {
        assert_eq!(name(""), Err("no name".to_string()))
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn panics() {
        let cart = Cart { items: vec![] };
        assert_eq!(cart.size(), 0);
        let _ = cart.items[cart.size()];
    }

    #[test]
    fn sizes() {
        let cart = Cart { items: vec![1] };
        match cart.size() {
            1 => return,
            _ => {}
        }
        panic!("not {}", 1);
    }
}
"""


def results(folder: Path, source: bytes) -> dict[str, str]:
    """Outcome by name, of a library of one file."""
    (folder / "lib.rs").write_bytes(source)
    built = ran(folder, "rustc", "--edition", "2021", "--test", "lib.rs", "-o", "tests")
    if built.returncode:
        return {"build": built.stderr}
    said = ran(folder, "./tests", "--test-threads", "1")
    found = re.findall(r"(?m)^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED)$", said.stdout)
    return {name: "passed" if word == "ok" else "failed" for name, word in found}


def test_each_canary_fails_under_its_own_name(tmp_path: Path) -> None:
    need("rustc")
    before = results(tmp_path, SOURCE)
    assert red(before) == set(), before
    tested = SOURCE.replace(
        b"            1 => return,", b"            1 => { assert!(true); return }"
    )
    made = canaries(tested, "rust")
    assert len(made) == 14
    for half in halves(made):
        after = results(tmp_path, combined(tested, half))
        assert red(after) == {one.name for one in half}, after
        assert after.keys() == before.keys()


def test_emptied_functions_compile_and_turn_honest_tests_red(tmp_path: Path) -> None:
    need("rustc")
    emptied = empty_functions(None, SOURCE, "rust")
    assert emptied is not None
    assert emptied.functions == ("total", "name", "names", "Cart.size")
    after = results(tmp_path, emptied.source)
    assert {name.removeprefix("tests::") for name in red(after)} == {
        "plain", "early", "result", "branches", "tail", "sizes",
    }  # fmt: skip


def test_mutants_compile_mostly(tmp_path: Path) -> None:
    need("rustc")
    made = mutants(None, SOURCE, "rust", 12)
    broken = []
    for mutant in made:
        (tmp_path / "lib.rs").write_bytes(mutant.source)
        said = ran(
            tmp_path, "rustc", "--edition", "2021", "--crate-type", "lib", "--emit", "metadata",
            "--cap-lints", "warn", "lib.rs",
        )  # fmt: skip
        broken += [mutant.description + said.stderr] if said.returncode else []
    assert len(broken) <= 1, broken


def test_old_tests_are_run_in_the_new_file(tmp_path: Path) -> None:
    need("rustc")
    changed = SOURCE[: SOURCE.index(b"#[cfg(test)]")].replace(b"RATE: u32 = 2", b"RATE: u32 = 3")
    weakened = changed + b"#[cfg(test)]\nmod tests {\n    #[test]\n    fn plain() {}\n}\n"
    for source in (weakened, changed):
        after = results(tmp_path, with_regions_of(source, SOURCE, "rust"))
        assert red(after) == {"tests::early"}
