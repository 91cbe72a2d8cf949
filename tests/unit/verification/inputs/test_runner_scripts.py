"""Scripts of Python that start a test tool themselves."""

from __future__ import annotations

import pytest

from agentrunner.verification.inputs.tools_python import tools_started


@pytest.mark.parametrize(
    ("text", "started"),
    [
        (
            "import unittest\nunittest.main(module=None, argv=['x', 'discover', '-s', 'tests'])\n",
            [("unittest", ["discover", "-s", "tests"])],
        ),
        ("import unittest as u\nu.main('shop.tests')\n", [("unittest", ["shop.tests"])]),
        (
            "from unittest import TestLoader, TextTestRunner\n"
            "found = TestLoader().discover('tests', pattern='*_test.py')\n"
            "TextTestRunner().run(found)\n",
            [("unittest", ["discover", "-s", "tests", "-p", "*_test.py"])],
        ),
        (
            "import os\nimport unittest\n"
            "unittest.defaultTestLoader.discover(os.path.dirname(__file__))\n",
            [("unittest", ["discover"])],
        ),
        (
            "import sys\nfrom pytest import main\nsys.exit(main(['-q', 'checks', *sys.argv]))\n",
            [("pytest", ["-q", "checks"])],
        ),
        ("import pytest\npytest.main()\n", [("pytest", [])]),
        (
            "import pytest\n\n\ndef run():\n    pytest.main(['a'])\n\n\ndef other():\n"
            "    pytest.main(['b'])\n\n\nif __name__ == '__main__':\n    run()\n",
            [("pytest", ["a"])],
        ),
        (
            "import unittest\nloader = unittest.TestLoader()\n"
            "suite = loader.loadTestsFromNames(['test_a', 'test_b'])\n",
            [("unittest", ["test_a", "test_b"])],
        ),
        (
            "from django.test.runner import DiscoverRunner\nrunner = DiscoverRunner()\n"
            "runner.run_tests([])\n",
            [("unittest", ["discover"])],
        ),
        ("from unittest import mock\nregistry.discover('plugins')\n", []),
        (
            "from django.test.utils import get_runner\n"
            "failures = get_runner(settings)().run_tests(['tests'])\n",
            [("unittest", ["discover"])],
        ),
        ("import unittest\nif __name__ == '__main__':\n    unittest.main()\n", []),
        ("import plugins\nplugins.loader.discover('plugins')\n", []),
        ("class main:\n    pass\nmain()\n", []),
        ("no python, said pytest.main()\n", []),
        (
            "import subprocess, sys\n"
            "subprocess.run([sys.executable, '-m', 'pytest', '-q', 'checks'], check=True)\n",
            [("pytest", ["-q", "checks"])],
        ),
        ("import os\nos.execvp('pytest', ['pytest', 'a.py'])\n", [("pytest", ["a.py"])]),
        ("import os\nos.system('python3 -m unittest -v')\n", [("unittest", ["-v"])]),
        (
            "import subprocess\n\n\ndef run(*words):\n    return subprocess.call(words)\n\n\n"
            "COMMAND = ('python3', '-m', 'pytest')\nrun(*COMMAND)\n",
            [("pytest", [])],
        ),
        ("import os\nos.system('echo pytest')\nnames = ['a', 'pytest']\n", []),
        ("import os\nos.system('echo \"')\nprint('pytest -q')\n", []),
        ("import os\nif os.path.isdir('unittest'):\n    os.chdir('unittest')\n", []),
        ("import shop\nshop.install(['pytest', 'ruff'])\nTOOLS = ['pytest', 'mypy']\n", []),
        (
            "import subprocess\nsubprocess.run('pytest tests || exit 1', shell=True, check=True)\n",
            [("pytest", ["tests"])],
        ),
        (
            "import subprocess\nCOMMAND = ['pytest', '-q']\nsubprocess.run(COMMAND, check=True)\n",
            [("pytest", ["-q"])],
        ),
    ],
)
def test_what_a_script_starts(text: str, started: list[tuple[str, list[str]]]) -> None:
    assert tools_started(text, []) == started


@pytest.mark.parametrize(
    ("text", "words", "started"),
    [
        ("import sys, pytest\npytest.main(sys.argv[1:])\n", ["a.py"], ["a.py"]),
        ("import sys, pytest\npytest.main(['-q', *sys.argv[1:]])\n", ["a.py"], ["-q", "a.py"]),
        ("import pytest\npytest.main()\n", ["a.py"], ["a.py"]),
        ("import unittest\nunittest.main(module=None)\n", ["test_a"], ["test_a"]),
        (
            "import subprocess, sys\nsubprocess.call(['pytest', '-q'] + sys.argv[1:])\n",
            ["a.py"],
            ["-q", "a.py"],
        ),
    ],
)
def test_the_words_of_a_script_go_on_to_the_tool(
    text: str, words: list[str], started: list[str]
) -> None:
    assert [given for _, given in tools_started(text, words)] == [started]
