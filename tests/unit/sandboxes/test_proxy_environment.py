from __future__ import annotations

from urllib.request import getproxies_environment, proxy_bypass

import pytest

from agentrunner.sandboxes.requests import proxy_environment


def test_every_spelling_leads_to_the_same_port() -> None:
    env = proxy_environment(3128)
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        assert env[name] == env[name.lower()] == "http://127.0.0.1:3128"
    assert env["NO_PROXY"] == env["no_proxy"]
    assert env["GRADLE_OPTS"].split() == [
        "-Dhttp.proxyHost=127.0.0.1",
        "-Dhttp.proxyPort=3128",
        "-Dhttps.proxyHost=127.0.0.1",
        "-Dhttps.proxyPort=3128",
    ]


def test_what_is_in_the_box_itself_is_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in proxy_environment(3128).items():
        monkeypatch.setenv(name, value)
    assert getproxies_environment()["https"] == "http://127.0.0.1:3128"
    for host in ("localhost:8000", "127.0.0.1:8787"):
        assert proxy_bypass(host)
    assert not proxy_bypass("example.org:443")
