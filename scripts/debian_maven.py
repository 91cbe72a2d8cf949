"""Lay Debian's Maven repository where a contributor's would be, for the versions a project names.

    python scripts/debian_maven.py REPOSITORY POM

Debian has one version of each artifact. What the POM names in another gets a POM that refers to
Debian's, which is Maven's own way (a relocation). What Debian lacks altogether stays missing.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

SYSTEM = Path("/usr/share/maven-repo")
PLUGINS = "org.apache.maven.plugins"
_REFERS = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version>
  <distributionManagement><relocation><version>{3}</version></relocation></distributionManagement>
</project>
"""


def main(repository: Path, pom: Path) -> None:
    """Fill a repository, which must not be there yet."""
    shutil.copytree(SYSTEM, repository)
    for group, name, version in named(pom):
        folder = repository / group.replace(".", "/") / name
        there = [place.name for place in folder.glob("*") if any(place.glob("*.jar"))]
        if not there or version in there:
            continue
        newest = max(there, key=lambda one: [int(part) for part in re.findall(r"\d+", one)])
        laid = folder / version / f"{name}-{version}.pom"
        laid.parent.mkdir(exist_ok=True)
        laid.write_text(_REFERS.format(group, name, version, newest))
        print(f"{group}:{name}:{version} is {newest}")


def named(pom: Path) -> Iterator[tuple[str, str, str]]:
    """Group, name and version of each plug-in and dependency that a POM names with a version."""
    root = ElementTree.parse(pom).getroot()
    texts = {
        item.tag.rpartition("}")[2]: item.text or "" for item in root.findall("{*}properties/*")
    }
    for kind, group in (("plugin", PLUGINS), ("dependency", "")):
        for item in root.iter(f"{root.tag.rpartition('}')[0]}}}{kind}"):
            words = [
                re.sub(r"\$\{(.+?)\}", lambda key: texts.get(key[1], key[0]), found or "")
                for found in (
                    item.findtext("{*}groupId", group),
                    *map(item.findtext, ("{*}artifactId", "{*}version")),
                )
            ]
            if all(words):
                yield words[0], words[1], words[2]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
