"""What of /etc a box shows for its toolchains: where links and names lead, and no secret."""

from __future__ import annotations

from pathlib import Path

from agentrunner.sandboxes.configuration import configuration_of
from tests.kit.files import write

KEY = "-----BEGIN RSA PRIVATE KEY-----\nabc\n"


def targets(programs: list[Path], etc: Path) -> set[str]:
    mounts = configuration_of(programs, etc)
    assert all(mount.read_only for mount in mounts)
    return {str(mount.target.relative_to(etc)) for mount in mounts}


def test_what_links_of_an_installation_lead_to_is_shown(tmp_path: Path) -> None:
    etc = write(tmp_path / "etc", {"java-17/security/java.security": "", "java-17/jvm.cfg": ""})
    java = write(tmp_path / "lib/jvm/java-17", {"bin/java": "", "conf/own": "", "lib/own": ""})
    (java / "conf/security").symlink_to(etc / "java-17/security")
    (java / "lib/jvm.cfg").symlink_to("../../../../etc/java-17/jvm.cfg")
    assert targets([java / "bin/java"], etc) == {"java-17/security", "java-17/jvm.cfg"}


def test_a_folder_of_which_much_is_linked_is_shown_once_unless_it_holds_a_secret(
    tmp_path: Path,
) -> None:
    files = {f"java-17/{name}": "" for name in ("a", "b", "c", "d", "security/policy")}
    etc = write(tmp_path / "etc", files)
    java = write(tmp_path / "lib/jvm/java-17", {"bin/java": "", "conf/own": ""})
    for name in ("a", "b", "c"):
        (java / "conf" / name).symlink_to(etc / "java-17" / name)
    few = {"java-17/a", "java-17/b", "java-17/c"}
    assert targets([java / "bin/java"], etc) == few
    (java / "conf/d").symlink_to(etc / "java-17/d")
    assert targets([java / "bin/java"], etc) == {"java-17"}
    (etc / "java-17/security/agent.password").touch()
    assert targets([java / "bin/java"], etc) == {*few, "java-17/d"}


def test_a_link_to_a_link_shows_both_ends_and_a_dangling_one_nothing(tmp_path: Path) -> None:
    etc = write(tmp_path / "etc", {"maven/settings.xml": ""})
    (etc / "alternatives").mkdir()
    (etc / "alternatives/mvn-conf").symlink_to(etc / "maven")
    maven = write(tmp_path / "share/maven", {"bin/mvn": ""})
    (maven / "conf").symlink_to(etc / "alternatives/mvn-conf")
    (maven / "gone").symlink_to(etc / "nowhere")
    (maven / "loop").symlink_to(maven / "loop")
    assert targets([maven / "bin/mvn"], etc) == {"alternatives/mvn-conf", "maven"}


def test_the_folder_of_the_program_s_name_is_shown_with_or_without_version(tmp_path: Path) -> None:
    etc = write(tmp_path / "etc", {"php/8.2/cli/php.ini": "", "emacs/site": "", "npmrc": ""})
    programs = [Path("/usr/bin/php8.2"), Path("/usr/bin/npmrc"), Path("/usr/bin/other")]
    assert targets(programs, etc) == {"php"}


def test_what_others_may_not_read_and_keys_are_never_shown(tmp_path: Path) -> None:
    names = ["server.key", "jmx.password", "shadow", "private/cert.pem", "closed", "hidden/file"]
    etc = write(tmp_path / "etc", {f"tool/{name}": "" for name in ["tool.conf", "key.pem", *names]})
    (etc / "tool/key.pem").write_text(KEY)
    (etc / "tool/closed").chmod(0o640)
    (etc / "tool/hidden").chmod(0o750)
    outside = write(tmp_path / "out", {"shadow": "", "id.key": ""})
    (etc / "tool/sly").symlink_to(outside / "shadow")
    (etc / "tool/odd").symlink_to(etc / "tool/key.pem")
    assert targets([Path("/usr/bin/tool")], etc) == {"tool/tool.conf"}


def test_an_installation_that_changed_is_looked_at_again(tmp_path: Path) -> None:
    etc = write(tmp_path / "etc", {"maven/settings.xml": "", "java/jvm.cfg": ""})
    maven = write(tmp_path / "share/maven", {"bin/mvn": "", "lib/ext/own": ""})
    (maven / "conf").symlink_to(etc / "maven")
    assert targets([maven / "bin/mvn"], etc) == {"maven"}
    (maven / "lib/ext/java").symlink_to(etc / "java")
    assert targets([maven / "bin/mvn"], etc) == {"maven", "java"}
    (maven / "conf").unlink()
    assert targets([maven / "bin/mvn"], etc) == {"java"}


def test_a_shared_prefix_is_no_installation() -> None:
    assert configuration_of([Path("/usr/bin/true"), Path("/bin/true")], Path("/etc")) == ()
