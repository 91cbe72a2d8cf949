# Runs at the start of every Python of the project under test, from 2.7 on, and does nothing but
# look out for test tools. It must never fail or print. `loaded_first.py` follows it.
import os
import sys

_PLACE = os.path.dirname(os.path.abspath(__file__))
_TOOLS = ("_pytest", "_pytest.config", "unittest", "unittest.result", "behave.configuration")


def _code(name):
    """The code of another of our files: as the host compiled it, where it has this Python."""
    path = os.path.join(_PLACE, name)
    try:
        magic = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
        with open("%s.%s-%s" % (path, sys.implementation.cache_tag, magic.hex()), "rb") as compiled:
            return __import__("marshal").loads(compiled.read())
    except Exception:
        with open(path, "rb") as source:
            # The name keeps it out of measured coverage and of tracebacks' source lines.
            return compile(source.read(), "<agentrunner>", "exec")


class _Late(object):
    """Loads what watches the tools when the first of them is imported: most processes have none."""

    def __init__(self, builtin, path):
        self.builtin, self.path = builtin, path

    def find_spec(self, name, path=None, target=None):
        if name not in _TOOLS:
            return None
        try:
            sys.meta_path.remove(self)
            space = {"__name__": "agentrunner_python", "PLACE": _PLACE, "CODE": _code}
            space.update(BUILTIN=self.builtin, PATH=self.path)
            exec(_code("agentrunner_python.py"), space)
            return space["watch"]().find_spec(name, path, target)
        except Exception:
            return None


def _start():
    if sys.version_info >= (3, 6):
        sys.meta_path.insert(0, _Late(dict(vars(__import__("builtins"))), list(sys.path)))
