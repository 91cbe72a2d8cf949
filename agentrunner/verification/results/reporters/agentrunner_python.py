"""Watches a Python of the project under test for pytest, unittest and behave. PYTEST_DONT_REWRITE.

Runs under Python 3.6 to 3.14 and more, also with `-W error`. Each tool that is imported is hooked
when it is; each session writes one report, a JSON object a line, by single unbuffered writes, so
that a crash leaves what was known. Processes that a session starts are not watched.
"""

import os
import sys

PLACE = globals().get("PLACE", "")
CODE = globals().get("CODE")
"""Returns the code of a file of ours."""
BUILTIN = globals().get("BUILTIN", {})
"""The builtins as they were when Python started."""
PATH = globals().get("PATH", ())
"""Where modules were looked for then."""
VARIABLE = "PYTHONPATH"
MOST = 2000
FAILED_IMPORT = "Failed to import test module: "
"""What unittest says of a file that cannot be imported, in front of the traceback."""


class Report:
    """A report file, written by the process that opened it and by no child of it."""

    def __init__(self, tool, cwd):
        self.pid = os.getpid()
        folder = os.path.dirname(PLACE)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        path = os.path.join(folder, "%s-%s.jsonl" % (tool, stamp()))
        self.fd = os.open(path, flags, 0o644)
        os.fchmod(self.fd, 0o644)
        self.write(k="start", tool=tool, cwd=cwd)
        hide()

    def write(self, **event):
        if os.getpid() != self.pid:
            return
        import json

        event = dict((key, value) for key, value in event.items() if value not in (None, ""))
        data = (json.dumps(event) + "\n").encode("ascii", "replace")
        while data:
            data = data[os.write(self.fd, data) :]


def hide():
    """Take ourselves out of the environment that processes of a session inherit."""
    value = os.environ.get(VARIABLE)
    if value is not None:
        kept = [each for each in value.split(os.pathsep) if os.path.abspath(each or ".") != PLACE]
        if kept:
            os.environ[VARIABLE] = os.pathsep.join(kept)
        else:
            del os.environ[VARIABLE]


def stamp():
    """What makes the names of reports unique, in the order of their beginnings."""
    import time

    return "%020d-%d-%s" % (time.time() * 1000000, os.getpid(), os.urandom(4).hex())


def quietly(function):
    """A function whose failures are ours, and must not become the tool's."""

    def call(*arguments, **named):
        try:
            return function(*arguments, **named)
        except Exception:
            return None

    return call


class Watch:
    """Finds modules as everybody does, and hooks those of test tools once they are executed."""

    hooks = {}

    def __init__(self):
        self.busy = False

    def find_spec(self, name, path=None, target=None):
        hook = self.hooks.get(name)
        late = LOOK is not None and LOOK.closed and LOOK.is_of_tool(name)
        if self.busy or not (hook or late):
            return None
        self.busy = True
        try:
            from importlib.util import find_spec

            spec = find_spec(name)
        except Exception:
            return None
        finally:
            self.busy = False
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return None
        if isinstance(spec.loader, type):
            return None  # One loader for all frozen modules, which is not ours to change.
        loader = spec.loader
        execute = loader.exec_module

        def exec_module(module):
            try:
                del loader.exec_module
            except AttributeError:
                pass
            execute(module)
            if hook is not None:
                quietly(hook)(module)
            if LOOK is not None:
                quietly(LOOK.loaded)(name, module)

        try:
            loader.exec_module = exec_module
        except Exception:
            return None
        return spec


def watch():
    """Begin to look out."""
    found = Watch()
    sys.meta_path.insert(0, found)
    return found


# --- the look into the process ------------------------------------------------------------------


def new_look():
    """What compares the tool's functions, from a file of its own; None where it cannot."""
    space = {"__name__": "agentrunner_look"}
    exec(CODE("agentrunner_look.py"), space)
    return space["Look"](BUILTIN, PATH)


LOOK = quietly(new_look)()


def looking(name):
    """A method of the look whose failures are noted; one that does nothing where there is none.

    What it looks at is the project's, which may have it fail on purpose.
    """
    method = getattr(LOOK, name, None)

    def call(*arguments):
        try:
            method(*arguments)
        except Exception:
            LOOK.note("the look itself, which fails in %s" % name)

    return quietly(call if method else lambda *_: None)


look, look_whole, look_at_case = looking("look"), looking("whole"), looking("test_case")
look_at_hooks = looking("hooks_of_unittest")
look_at_plugins, look_at_items, look_at_item = (
    looking("pytest_plugins"),
    looking("pytest_items"),
    looking("pytest_item"),
)


def tell_looks(report):
    """From here on what was found exchanged is written into this report."""
    if LOOK is not None:
        LOOK.sink = report.write
        LOOK.tell()


def looked():
    """How often was looked; nothing where that was not possible."""
    return LOOK.count if LOOK is not None and LOOK.closed else None


# --- pytest -------------------------------------------------------------------------------------


def hook_pytest(config_module):
    """Add the plug-in below to those that every session begins with."""
    import types

    # Where xdist is not there, a hook of its own would be an error.
    config_module.hookimpl(optionalhook=True)(Plugin.pytest_xdist_node_collection_finished)
    module = types.ModuleType("agentrunner_results", __doc__)
    plugin = Plugin()
    for name in dir(plugin):
        if name.startswith("pytest_"):
            setattr(module, name, getattr(plugin, name))
    sys.modules[module.__name__] = module
    config_module.default_plugins = tuple(config_module.default_plugins) + (module.__name__,)


class Plugin:
    """Writes down what a session reports; the outermost one where sessions are nested."""

    def __init__(self):
        self.report = None
        self.session = None
        self.depth = 0
        """How many sessions run inside of the one that is reported."""
        self.tests = {}
        self.done = set()
        self.cut = False
        self.expected = 0
        self.group = False

    def pytest_sessionstart(self, session):
        if self.session is not None:
            self.depth += 1
        elif not hasattr(session.config, "workerinput"):
            quietly(self._begin)(session)

    def _begin(self, session):
        config = session.config
        self.tests, self.done, self.cut, self.expected = {}, set(), False, 0
        # A session that nests in this one finds it here, also where no report can be written.
        self.session = session
        self.config = config
        # A file that cannot be imported yet hides no other: the session stays red, all the same.
        config.option.continue_on_collection_errors = True
        self.group = getattr(config.option, "dist", "") == "loadgroup"
        parameters = getattr(config, "invocation_params", None)
        self.folder = str(parameters.dir if parameters is not None else config.invocation_dir)
        self.root = str(getattr(config, "rootpath", None) or config.rootdir)
        self.report = Report("pytest", self.folder)
        tell_looks(self.report)
        look_at_plugins(config.pluginmanager)

    def _write(self, **event):
        if self.report is not None:
            self.report.write(**event)

    def _path(self, path):
        """A path below the root as seen from where pytest was started."""
        if not path or self.root == self.folder:
            return path
        return os.path.relpath(os.path.join(self.root, path), self.folder).replace(os.sep, "/")

    def _name(self, nodeid):
        if self.group and "@" in nodeid and "]" not in nodeid.rsplit("@", 1)[1]:
            nodeid = nodeid.rsplit("@", 1)[0]
        path, separator, rest = nodeid.partition("::")
        return self._path(path) + separator + rest

    def pytest_collection_finish(self, session):
        if session is self.session:
            self.expected = len(session.items)
            look_whole("")
            look_at_plugins(session.config.pluginmanager)
            look_at_items(session.items)

    def pytest_xdist_node_collection_finished(self, node, ids):
        if node.config is getattr(self, "config", None):
            self.expected = max(self.expected, len(ids))

    def pytest_collectreport(self, report):
        quietly(self._collected)(report)

    def _collected(self, report):
        if report.outcome == "passed" or self.report is None or self.depth:
            return
        name = self._name(report.nodeid) or "collection"
        outcome = "skipped" if report.outcome == "skipped" else "error"
        if (name, outcome) in self.done:
            return  # Under xdist each worker tells.
        self.done.add((name, outcome))
        if outcome == "error":
            self._write(k="lost", n=name)
        file, whole = name.partition("::")[0], str(getattr(report, "longrepr", "") or "")
        text = text_of(report)
        message = "\n".join(part for part in (last_error(whole), text) if part) if text else ""
        line = line_in(whole, os.path.join(self.folder, file), self.root) if text else None
        self._write(k="test", n=name, o=outcome, f=file, l=line, m=message[:MOST])

    def pytest_runtest_logstart(self, nodeid, location):
        quietly(self._started)(nodeid, location)

    def _started(self, nodeid, location):
        if self.report is None or self.depth:
            return
        name = self._name(nodeid)
        look(name, True)
        look_at_item(nodeid, name)
        self._write(k="begin", n=name, f=self._path(location[0]), l=line_of(location))

    def pytest_runtest_logreport(self, report):
        quietly(self._logged)(report)

    def _logged(self, report):
        if self.report is None or self.depth:
            return
        name = self._name(report.nodeid)
        context = getattr(report, "context", None)
        if context is not None and type(report).__name__.lower().startswith("subtest"):
            case = name + " " + case_of(report)
            file = self._path(report.location[0])
            self._write(k="test", n=case, o=outcome_of(report), f=file, m=text_of(report))
            return
        if report.outcome == "rerun":
            self.tests.pop(report.nodeid, None)
            return
        if report.when == "call":
            look_at_item(report.nodeid, name, True)
        elif report.when == "teardown":
            look(name)  # What fixtures exchanged is put back by now.
        phases = self.tests.setdefault(report.nodeid, [])
        phases.append((report.when, outcome_of(report), text_of(report)))
        if report.when in ("setup", "call"):
            return
        del self.tests[report.nodeid]
        outcome, message = merged(phases)
        self.done.add(report.nodeid)
        file, line = self._path(report.location[0]), line_of(report.location)
        self._write(k="test", n=name, o=outcome, f=file, l=line, m=message)

    def pytest_sessionfinish(self, session, exitstatus):
        if session is self.session:
            quietly(self._end)(session, exitstatus)
            self.session = self.report = None
        elif self.depth:
            self.depth -= 1

    def _end(self, session, exitstatus):
        look_whole("", True)
        look_at_plugins(session.config.pluginmanager)
        finished = len([each for each in self.done if not isinstance(each, tuple)])
        stopped = bool(session.shouldstop or session.shouldfail)
        self._write(
            k="end",
            cut=stopped or int(exitstatus) in (2, 3, 4) or finished < self.expected,
            looked=looked(),
        )


def line_of(location):
    """The line of a test, counted from 1; None where pytest knows none."""
    return location[1] + 1 if isinstance(location[1], int) else None


def case_of(report):
    """What tells a sub-test from the others of its test: `[message] (name=value)`."""
    message = getattr(report.context, "msg", None)
    values = getattr(report.context, "kwargs", None) or {}
    parts = ["[" + str(message) + "]"] if message is not None else []
    if values:
        parts.append("(" + ", ".join("%s=%s" % pair for pair in values.items()) + ")")
    return " ".join(" ".join(parts).split()) or "(<subtest>)"


def outcome_of(report):
    """What one phase of a test came to."""
    if hasattr(report, "wasxfail"):
        return {"skipped": "xfailed", "passed": "xpassed"}.get(report.outcome, report.outcome)
    return report.outcome


def merged(phases):
    """The outcome of a test by those of its phases, and what a red one says."""
    for when, outcome, message in phases:
        if outcome == "failed" and when not in ("setup", "teardown"):
            return "failed", message
    for _, outcome, message in phases:
        if outcome == "failed":
            return "error", message
    for wanted in ("xfailed", "xpassed", "skipped"):
        for _, outcome, message in phases:
            if outcome == wanted:
                return outcome, ""
    return "passed", ""


def last_error(text):
    """What pytest or Python says last of an error that a traceback led to."""
    for line in reversed(text.splitlines()):
        if line.startswith("E ") and line[1:].strip():
            return line[1:].strip()
    return ""


def line_in(text, file, folder):
    """The line of a file at which a traceback, by pytest or by Python, last was in it."""
    import re

    found = None
    for hit in re.finditer(r'(?m)^\s*(?:File "(.+?)", line (\d+)|(\S.*?):(\d+): in )', text):
        path = os.path.join(folder, hit.group(1) or hit.group(3))
        if os.path.realpath(path) == os.path.realpath(file):
            found = int(hit.group(2) or hit.group(4))
    return found


def text_of(report):
    """The error of a red report: its end, where pytest says what went wrong."""
    if report.outcome != "failed":
        return ""
    crash = getattr(getattr(report, "longrepr", None), "reprcrash", None)
    text = str(getattr(crash, "message", "") or "")
    whole = str(getattr(report, "longrepr", "") or "")
    return (text + "\n" + whole[-MOST:])[:MOST] if text else whole[-MOST:]


# --- unittest -----------------------------------------------------------------------------------


def hook_unittest(result_module):
    """Let the base class of all results tell what it is told."""
    session = Unittest()
    base = result_module.TestResult
    for name in vars(Unittest):
        if name[:1] != "_" and hasattr(base, name):
            wrap(base, name, quietly(getattr(session, name)))
    import atexit

    atexit.register(quietly(session.leave))


def wrap(base, name, report):
    """Replace a method by one that first tells and then does what it did."""
    import functools

    original = getattr(base, name)

    @functools.wraps(original)
    def method(self, *arguments, **named):
        report(self, *arguments, **named)
        return original(self, *arguments, **named)

    setattr(base, name, method)


UNLOADED = "_agentrunner_unloaded"
"""The attribute of a test that failed since its name led nowhere: the module that fails, or ""."""


def hook_loader(loader_module):
    """Have what a name does not lead to tell what fails: unittest keeps its last part alone."""
    import functools

    cls = loader_module.TestLoader
    original = cls.loadTestsFromName

    @functools.wraps(original)
    def loadTestsFromName(self, name, module=None):
        found = original(self, name, module)
        quietly(keep_module)(found, name, module)
        return found

    cls.loadTestsFromName = loadTestsFromName


def keep_module(found, name, module):
    """Keep the module that could not be loaded with the test that says so.

    A file keeps the name it was given, and a module that was found the names of what fails in it.
    """
    if module is None and all(part.isidentifier() for part in name.split(".")):
        for test in found:
            if type(test).__name__ == "_FailedTest":
                setattr(test, UNLOADED, module_not_loaded(name.split(".")))


def module_not_loaded(parts):
    """The first module on the way to a name that is there and fails; "" where none is.

    Then what was asked for is not written yet.
    """
    from importlib.util import find_spec

    for end in range(len(parts), 0, -1):
        name = ".".join(parts[:end])
        if name in sys.modules:
            return ""
        try:
            spec = find_spec(name)
        except Exception:
            continue
        if spec is not None:
            return name
    return ""


class Unittest:
    """Writes down what unittest's results are told; of nested ones only the outermost."""

    def __init__(self):
        self.pid = os.getpid()
        self.report = None
        self.result = None
        """The one whose test runs."""
        self.test = None
        self.problems = []
        self.ended = True
        self.last = None
        self.written = None
        """The last report, also when it has its end."""

    def _ours(self, result):
        if os.getpid() != self.pid or (self.result is not None and self.result is not result):
            return False
        if sys.modules.get("agentrunner_results") is not None and "_pytest.main" in sys.modules:
            plugin = sys.modules["agentrunner_results"].pytest_sessionstart.__self__
            if plugin.session is not None:
                return False
        return True

    def _open(self):
        if self.report is None:
            self.report = self.written = Report("unittest", os.getcwd())
            tell_looks(self.report)
        self.ended = False
        return self.report

    def startTestRun(self, result):
        if self.test is None and self._ours(result):
            self._open()

    def stopTestRun(self, result):
        if self.test is None and self._ours(result) and self.report is not None:
            self._finish(bool(getattr(result, "shouldStop", False)))

    def _finish(self, cut):
        if not self.ended:
            self.ended = True
            look_whole("", True)
            look_at_hooks()
            self.report.write(k="end", cut=cut, looked=looked())
            self.report = None

    def leave(self):
        if self.written is not None and getattr(sys, "last_type", None) is not None:
            # The runner itself broke: an exception of its own ended the process.
            self.written.write(k="lost")
        if os.getpid() == self.pid and self.report is not None and not self.ended:
            self._finish(self.test is not None or bool(getattr(self.last, "shouldStop", False)))

    def startTest(self, result, test):
        if self.test is not None or not self._ours(result):
            return
        self.result, self.test, self.problems, self.last = result, test, [], result
        self._open().write(k="begin", n=name_of(test), f=file_of(test))
        look(name_of(test), True)
        look_at_case(type(test), test)

    def stopTest(self, result, test):
        if result is not self.result or test is not self.test or os.getpid() != self.pid:
            return
        outcome, message, line = "passed", "", None
        for wanted in ("failed", "error", "xfailed", "xpassed", "skipped", "passed"):
            problems = [each for each in self.problems if each[0] == wanted]
            if problems:
                outcome, message, line = problems[0]
                break
        else:
            outcome, message = "error", "it ended without a result"
        look(name_of(test))
        look_at_case(type(test), test)
        self._write(test, outcome, message, line)
        self.result = self.test = None

    def _write(self, test, outcome, message="", line=None):
        self._open().write(
            k="test", n=name_of(test), o=outcome, f=file_of(test), l=line, m=message
        )

    def _add(self, result, test, outcome, message="", line=None):
        if not self._ours(result):
            return
        if self.test is None:
            # A class or module could not be set up: the tests in it are missing.
            self._open().write(k="lost", n=name_of(test))
            self._write(test, outcome, message, line)
        elif test is self.test:
            self.problems.append((outcome, message, line))
        elif getattr(test, "test_case", None) is self.test:
            self._write(test, outcome, message, line)

    def addSuccess(self, result, test):
        self._add(result, test, "passed")

    def addError(self, result, test, error):
        if type(test).__name__ == "_FailedTest" and getattr(test, UNLOADED, None) != "":
            self._open().write(k="lost", n=name_of(test))
        inside = self.test is test and in_body(test, error)
        outcome, text = "failed" if inside else "error", text_of_error(error)
        self._add(result, test, outcome, text, line_of_error(test, error))

    def addFailure(self, result, test, error):
        self._add(result, test, "failed", text_of_error(error), line_of_error(test, error))

    def addSkip(self, result, test, reason):
        if self.test is None and self._ours(result):
            self._write(test, "skipped")
        else:
            self._add(result, test, "skipped")

    def addExpectedFailure(self, result, test, error):
        self._add(result, test, "xfailed")

    def addUnexpectedSuccess(self, result, test):
        self._add(result, test, "xpassed")

    def addSubTest(self, result, test, subtest, error):
        if not self._ours(result) or self.test is not test:
            return
        if error is None:
            self._write(subtest, "passed")
            return
        message, line = text_of_error(error), line_of_error(test, error)
        self._write(subtest, "failed", message, line)
        self.problems.append(("failed", message, line))


def name_of(test):
    """The full id; a test of the script that was started carries its path."""
    name = str(test.id())
    if name.startswith("__main__."):
        script = getattr(sys.modules.get("__main__"), "__file__", "") or "__main__"
        name = os.path.relpath(script).replace(os.sep, "/") + "::" + name[len("__main__.") :]
    elif name.startswith("unittest.loader._FailedTest."):
        name = getattr(test, UNLOADED, "") or name[len("unittest.loader._FailedTest.") :]
    return name


def file_of(test):
    """The file of a test's class, relative where it is below the current folder."""
    try:
        case = getattr(test, "test_case", test)
        path = getattr(sys.modules.get(type(case).__module__), "__file__", None) or ""
        if type(case).__name__ == "_FailedTest":
            path = os.path.join(*name_of(case).split(".")) + ".py"
            return path.replace(os.sep, "/") if os.path.isfile(path) else ""
        if type(case).__module__.startswith("unittest."):
            path = module_file(name_of(case))
            if not path:
                return ""
        path = os.path.relpath(path)
        return "" if path.startswith("..") else path.replace(os.sep, "/")
    except Exception:
        return ""


def module_file(name):
    """The file of the class or module that `setUpClass (tests.test_a.TestA)` names; "" if none."""
    place = name[:-1].rpartition(" (")[2] if name.endswith(")") else ""
    while place and place not in sys.modules:
        place = place.rpartition(".")[0]
    return getattr(sys.modules.get(place), "__file__", None) or ""


def in_body(test, error):
    """Whether an error rose in the test itself, not in what sets it up or takes it down."""
    wanted = getattr(test, "_testMethodName", None)
    trace = error[2] if isinstance(error, tuple) and len(error) == 3 else None
    while trace is not None:
        if trace.tb_frame.f_code.co_name == wanted:
            return True
        trace = trace.tb_next
    return False


def text_of_error(error):
    """The end of an error's text."""
    if isinstance(error, tuple) and len(error) == 3:
        import traceback

        last = "".join(traceback.format_exception_only(error[0], error[1])).strip()
        if FAILED_IMPORT in last:  # whose text ends in what a traceback led to
            last = last.splitlines()[-1].strip() + "\n" + last
        return last[:MOST]
    return str(error)[:MOST]


def line_of_error(test, error):
    """The line in the test's own file at which an error rose; None if that is not known."""
    try:
        case = getattr(test, "test_case", test)
        if type(case).__name__ == "_FailedTest":
            return line_in(str(error[1]), file_of(case), os.getcwd())
        file, line, trace = sys.modules[type(case).__module__].__file__, None, error[2]
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == file:
                line = trace.tb_lineno
            trace = trace.tb_next
        return line
    except Exception:
        return None


# --- behave -------------------------------------------------------------------------------------


def hook_behave(configuration_module):
    """Give behave one more formatter, which writes a JSON report; the others stay."""
    cls = configuration_module.Configuration
    original = cls.setup_formats if hasattr(cls, "setup_formats") else None
    if original is None:
        return

    def setup_formats(self, *arguments, **named):
        original(self, *arguments, **named)
        quietly(add_formatter)(self)

    cls.setup_formats = setup_formats


def add_formatter(config):
    """Not yet known to behave: the JSON formatter, into a file of its own."""
    folder = os.path.dirname(PLACE)
    from behave.formatter.base import StreamOpener

    if not config.format:
        config.format = [config.default_format]
    while len(config.outputs) < len(config.format):
        config.outputs.append(StreamOpener(stream=sys.stdout))
    config.format = list(config.format) + ["json"]
    config.outputs.append(StreamOpener(os.path.join(folder, "behave-%s.json" % stamp())))
    hide()


Watch.hooks = {
    "_pytest.config": hook_pytest,
    "unittest.loader": hook_loader,
    "unittest.result": hook_unittest,
    "behave.configuration": hook_behave,
}
