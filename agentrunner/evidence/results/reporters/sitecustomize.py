# Runs at the start of every Python of the project under test, from 2.7 on, and does nothing but
# look out for test tools. It must never fail, print, or stay on the module search path.
import sys


def _start():
    import os

    place = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or ".") != place]
    try:
        if sys.version_info >= (3, 6):
            with open(os.path.join(place, "agentrunner_python.py"), "rb") as source:
                # The name keeps it out of measured coverage and of tracebacks' source lines.
                code = compile(source.read(), "<agentrunner>", "exec")
            space = {"__name__": "agentrunner_python", "PLACE": place}
            exec(code, space)
            space["watch"]()
    except Exception:
        pass
    # The sitecustomize that would have run without this one.
    ours = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


_start()
