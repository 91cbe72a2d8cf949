"""Looks into a test tool's own process: which functions were exchanged. PYTEST_DONT_REWRITE.

It remembers the functions that decide (of unittest, pytest, importlib and the builtins that
assertions use) before the first code of the project runs, and compares them when tests are
collected and around each test. What was put back in between is seen as well: on CPython by the
version that each class carries, and for the code of functions by an audit hook. Everything it needs
later is held from the start, in places that modules of the project do not reach by name.
"""

import ast
import builtins
import dis
import functools
import os
import sys
import types
import warnings
from hashlib import sha256
from operator import is_, itemgetter

TOOLS = ("unittest", "_pytest", "pytest", "pluggy", "importlib")
MORE = ("_frozen_importlib", "_frozen_importlib_external")
ASSERTIONS = ("unittest.case", "unittest.util", "unittest.result", "_pytest.assertion.util",
              "_pytest.raises", "_pytest.python_api")  # fmt: skip
"""Modules whose functions say which of the builtins decide."""
OFTEN = (*ASSERTIONS, "_pytest.assertion", "_pytest.assertion.rewrite", "_pytest.runner",
         "_pytest.python", "_pytest.outcomes", "_pytest.reports", "_pytest.unittest", "unittest",
         "pytest", "builtins")  # fmt: skip
"""Modules whose functions are compared after each test; those of others where all tests ended."""
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type)
ATTRIBUTES = (*FUNCTIONS, classmethod, staticmethod, property, type(object.__init__))
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
PARTIAL = (functools.partial, getattr(functools, "partialmethod", functools.partial))
OF_C = tuple(
    type(vars(one)[name])
    for one, name in (
        (object, "__init__"),
        (object, "__class__"),
        (str, "join"),
        (dict, "fromkeys"),
    )
)
"""Kinds of methods and attributes that say whose they are, and that only C can make."""
DEEPEST = 4
mro_of, space_of, name_of, module_of = (
    type.__dict__[name].__get__ for name in ("__mro__", "__dict__", "__qualname__", "__module__")
)
"""What a class is by Python's own account: a class of classes can answer such questions itself."""
STDLIB = os.path.dirname(os.__file__) + os.sep
MOST = 200
MOST_INHERITED = 2000
AUDITED = hasattr(sys, "addaudithook")
EVENTS = frozenset(("object.__setattr__", "exec", "sys.settrace"))
WRITTEN = " (written to and put back)"


def is_installed(path):
    """Whether a file belongs to Python or to an installed package."""
    if path.startswith("<"):
        return True
    path = os.path.abspath(path)
    return (
        path.startswith(STDLIB)
        or "/site-packages/" in path
        or "/dist-packages/" in path
        or os.path.dirname(path) == os.path.dirname(sys.executable)
    )


def is_of_package(value):
    """Whether a callable is of an installed package: some wrap each test so, for asynchronous ones."""
    function = function_of(value)
    module = sys.modules.get(type(value).__module__)
    path = function.__code__.co_filename if function else getattr(module, "__file__", None) or ""
    return "/site-packages/" in path or "/dist-packages/" in path


def function_of(value):
    """The function behind a method of any kind, or None."""
    value = getattr(value, "__func__", value)
    if type(value) is property:
        value = value.fget
    return value if type(value) is types.FunctionType else None


def inside(function):
    """What a function does: its code, defaults, and functions that it closes over."""
    held = [function.__code__, function.__defaults__, function.__kwdefaults__]
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:
            held.append(None)
    return held


def versions():
    """A function that gives live cells of the versions of classes; None where there are none."""
    try:
        import ctypes

        # Where in a class its version stands is found out by changing one.
        probe = type("Probe", (object,), {"x": 0, "y": 0})
        places = range(0, type.__basicsize__ - 3, 4)
        words = [ctypes.c_uint32.from_address(id(probe) + place) for place in places]
        likely = None
        for turn in range(4):
            probe.y
            before = [word.value for word in words]
            probe.x = turn
            after = [word.value for word in words]
            probe.y
            again = [word.value for word in words]
            moved = {
                at
                for at in range(len(words))
                if before[at] and after[at] != before[at] and again[at] not in (0, before[at])
            }
            likely = moved if likely is None else likely & moved
        if len(likely) != 1:
            return None
        place = places[likely.pop()]
    except Exception:
        return None

    def cell(cls):
        getattr(cls, "__init__", None)
        return ctypes.c_uint32.from_address(id(cls) + place)

    return cell


class Look:
    """What is remembered, and what was found exchanged."""

    def __init__(self, builtin, path=()):
        self.builtin = builtin
        """What the builtins were when Python started."""
        self.packages = tuple(os.path.abspath(one) + os.sep for one in path if "-packages" in one)
        """Folders of installed packages that Python knew then."""
        self.folder = os.getcwd()
        self.closed = False
        """Whether code of the project runs already."""
        self.taken = {}
        self.modules = []
        self.often = []
        self.classes = []
        self.tools = {id(object), id(type)}
        """Which classes are the tool's or Python's first ones, whatever they say of themselves."""
        self.kit = None
        """The class of all tests of unittest."""
        self.names_of_kit = frozenset()
        self.functions = {}
        self.cell = versions()
        self.cells = []
        self.plain = []
        """Where classes have no version: the attributes of those that are compared often."""
        self.tags = []
        self.often_cells = []
        self.often_tags = []
        self.found = {}
        self.sink = None
        self.where = ""
        self.count = 0
        self.known = {}
        self.own_cells = {}
        self.hooks = None
        self.heirs = {}
        self.inherited = 0
        self.called = set()
        """Names that tests use: of functions, modules and methods."""
        self.test_files = set()
        self.texts = {}
        self.parsed = {}
        self.items = {}
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        self._audit()
        if main and not is_installed(main):
            self.close()

    # -- taking -----------------------------------------------------------------------------------

    def _audit(self):
        if not AUDITED:
            self.close()
            return
        functions, pid, getpid = self.functions, os.getpid(), os.getpid
        code_type = types.CodeType

        def take(event, arguments):
            if event == "object.__setattr__":
                held = functions.get(id(arguments[0]))
                if held is not None and held[0] is arguments[0] and getpid() == pid:
                    self.note("%s.%s" % (held[1], arguments[1]))
            elif event == "exec":
                if not self.closed and type(arguments[0]) is code_type:
                    if not is_installed(arguments[0].co_filename):
                        self.close()
            elif event == "sys.settrace":
                if self.closed:
                    self.note("sys.settrace")

        def hook(event, arguments):
            if event in EVENTS:
                try:
                    take(event, arguments)
                except Exception:
                    pass  # It would stop what is done there.

        sys.addaudithook(hook)

    def close(self):
        """The project's own code begins: from here on the tool's functions stay what they are."""
        if self.closed:
            return
        self.closed = True
        for name, module in list(sys.modules.items()):
            if self.is_of_tool(name) and type(module) is types.ModuleType:
                self.take(name, module)
        self._take_builtins()

    def is_of_tool(self, name):
        return name.partition(".")[0] in TOOLS or name in MORE

    def loaded(self, name, module):
        """A module of the tool was executed just now."""
        if self.closed:
            self.take(name, module)

    def take(self, name, module):
        if name in self.taken:
            return
        self.taken[name] = module
        space = vars(module)
        held = {
            key: value
            for key, value in space.items()
            if isinstance(value, FUNCTIONS) and self.is_of_tool(value.__module__ or "")
        }
        self._remember(name, space, held)
        for key, value in held.items():
            if isinstance(value, type) and value.__module__ == name:
                self._take_class("%s.%s" % (name, key), value)
            elif getattr(value, "__module__", None) == name:
                self._take_function("%s.%s" % (name, key), value)
        self._names = itemgetter(*self.taken)
        self._modules = tuple(self.taken.values())

    def _remember(self, name, space, held):
        if len(held) > 1:
            keys = tuple(held)
            entry = [name, space, keys, itemgetter(*keys), tuple(held.values()), len(space)]
            self.modules.append(entry)
            if name in OFTEN:
                self.often.append(entry)

    def _take_class(self, label, cls):
        held = {}
        for key, value in vars(cls).items():
            if isinstance(value, ATTRIBUTES):
                held[key] = value
                self._take_function("%s.%s" % (label, key), value)
        self.classes.append((label, cls, held, frozenset(vars(cls))))
        self.tools.add(id(cls))
        if label == "unittest.case.TestCase":
            self.kit, self.names_of_kit = cls, frozenset(vars(cls))
        if self.cell is not None:
            self.cells.append(self.cell(cls))
            self.tags.append(self.cells[-1].value)
            if cls.__module__ in OFTEN or cls.__module__.startswith("pluggy"):
                self.often_cells.append(self.cells[-1])
                self.often_tags.append(self.tags[-1])
        elif cls.__module__ in OFTEN and len(held) > 1:
            self.plain.append((vars(cls), itemgetter(*held), tuple(held.values()), len(vars(cls))))

    def _take_function(self, label, value):
        function = function_of(value)
        if function is not None:
            self.functions.setdefault(id(function), (function, label, inside(function)))

    def _take_builtins(self):
        used = {"__import__", "__build_class__", "AssertionError"}
        for name in list(self.taken):
            if name in ASSERTIONS:
                for function, label, held in self.functions.values():
                    if label.startswith(name + "."):
                        used.update(held[0].co_names)
        held = {
            key: value
            for key, value in self.builtin.items()
            if key in used and isinstance(value, FUNCTIONS)
        }
        self._remember("builtins", vars(builtins), held)

    # -- looking ----------------------------------------------------------------------------------

    def note(self, what, where=None, **facts):
        """Something was exchanged. `facts` is what else is known, as fields of the report."""
        known = (what, facts.get("d"))
        if known not in self.found and len(self.found) - self.inherited < MOST:
            self.found[known] = dict(facts, n=what, t=self.where if where is None else where)
            self.tell()

    def tell(self):
        """Hand on what was found and not told yet."""
        if self.sink is not None:
            for known, facts in list(self.found.items()):
                if facts is not None:
                    self.sink(k="exchanged", **facts)
                    self.found[known] = None

    def look(self, where, before=False):
        """Compare, before or after a test: fast where nothing was touched.

        Before a test only classes are: what else was exchanged by then is seen after it.
        """
        self.where = where
        self.count += 1
        if self.closed and not (self._is_unwritten() if before else self._is_same()):
            self.whole(where)

    def _is_unwritten(self):
        try:
            for space, get, values, length in self.plain:
                if len(space) != length or not all(map(is_, get(space), values)):
                    return False
        except KeyError:
            return False
        return self.often_tags == [cell.value for cell in self.often_cells]

    def _is_same(self):
        if not self._is_unwritten():
            return False
        try:
            for _, space, _, get, values, length in self.often:
                if len(space) != length or not all(map(is_, get(space), values)):
                    return False
            return all(map(is_, self._names(sys.modules), self._modules))
        except KeyError:
            return False

    def whole(self, where, last=False):
        """Compare everything, and name what differs."""
        self.where = where
        if not self.closed:
            return
        for name, module in self.taken.items():
            if sys.modules.get(name) is not module:
                self.note("sys.modules[%r]" % name)
        for entry in self.modules:
            self._compare_module(entry)
        if last:
            self.whole_library()
        changed = self._written()
        differ = {each[1] for each in self.classes if not self._compare_class(*each)}
        for label, cls, _, _ in self.classes:
            # What is written to a class counts for its heirs as well; while files are loaded it
            # decides nothing yet.
            if where and cls in changed and not (changed | differ).intersection(cls.__mro__[1:]):
                if cls not in differ:
                    self.note(label + WRITTEN)
        # What is written to functions is told by the audit hook, where there is one.
        for function, label, held in list(self.functions.values()) if last or not AUDITED else ():
            now = inside(function)
            if len(now) != len(held) or not all(map(is_, now, held)):
                self.note(label)

    def _written(self):
        """Classes that were written to since the last look."""
        if self.cell is None:
            return set()
        changed = set()
        for at, (_, cls, _, _) in enumerate(self.classes):
            if self.cells[at].value != self.tags[at]:
                changed.add(cls)
                self.cell(cls)
                self.tags[at] = self.cells[at].value
        self.often_tags = [cell.value for cell in self.often_cells]
        return changed

    def _compare_module(self, entry):
        name, space, keys, _, values, length = entry
        for key, value in zip(keys, values):
            if space.get(key, entry) is not value:
                self.note("%s.%s" % (name, key))
        if len(space) != length:
            entry[5] = len(space)
            if name != "builtins":
                for key in set(space).intersection(self.builtin).difference(keys):
                    if key[:2] != "__":
                        self.note("%s.%s" % (name, key))

    def _compare_class(self, label, cls, held, keys):
        """Whether it is what it was."""
        now, same = vars(cls), True
        for key, value in held.items():
            if now.get(key, held) is not value:
                self.note("%s.%s" % (label, key))
                same = False
        for key in set(now).difference(keys):
            # A new name decides something where it stands before one of a base.
            if not callable(now[key]) and not hasattr(type(now[key]), "__get__"):
                continue
            if any(key in vars(base) for base in cls.__mro__[1:]):
                self.note("%s.%s" % (label, key))
                same = False
        return same

    # -- the tests' own classes -------------------------------------------------------------------

    def test_case(self, cls, instance=None):
        """Look at a class of tests, for what stands before the tool's own methods."""
        if not self.closed:
            return
        self._inherits(cls)
        if not is_among(self.kit, mro_of(cls)):
            return
        names = self.names_of_kit
        for base in mro_of(cls):
            if id(base) not in self.tools:
                self._own_class(base, names)
        space = vars(instance) if instance is not None else {}
        test = space.get("_testMethodName")
        method = function_of(getattr(cls, test or "", None))
        self.library_of(method, file_of_class(cls))
        for key in names.intersection(space):
            if callable(space[key]) and key[:2] != "__":
                self.note("%s().%s" % (label_of(cls), key))
        if test in space and not is_of_package(space[test]):
            self.note("%s().%s" % (label_of(cls), test))
        for kind, equality in (space.get("_type_equality_funcs") or {}).items():
            if callable(equality):
                self.note("%s()._type_equality_funcs[%s]" % (label_of(cls), kind.__name__))

    def _inherits(self, cls):
        """Note what a class of tests gets from classes elsewhere that the tool or Python calls.

        That is what stands before a name of another base, what pytest calls of a class, and what
        Python calls without a name. All else only the tests themselves can call.
        """
        if id(cls) in self.heirs:
            return
        self.heirs[id(cls)] = cls
        of_tests = [base for base in mro_of(cls) if is_among(self.kit, mro_of(base))]
        hooks = () if of_tests else self._hooks_of_classes()
        for at, base in enumerate(mro_of(cls)):
            if id(base) in self.tools:
                continue
            place = self._home(base)
            if is_among(base, of_tests):
                self._inherited(cls, base)
                continue
            others = [
                one
                for one in mro_of(cls)[at + 1 :]
                if one is not object and (place is None or self._home(one) != place)
            ]
            for key, value in list(space_of(base).items()):
                if is_of_c(value, base):
                    continue
                if key[:2] == "__":
                    decides = acts(value) and key[:8] != "__annota"
                else:
                    decides = key in hooks or any(key in space_of(one) for one in others)
                if decides or is_fixture(value):
                    self._inherited(cls, base, key, value)
        for kind in mro_of(type(cls)):
            if id(kind) not in self.tools:
                self._inherited(cls, kind, None, kind)

    def _inherited(self, cls, base, key=None, value=None):
        """Note one thing that a class inherits, unless it is of its own file or an installed one."""
        home, places = self._home(cls), self._places(base, key, value)
        if all(place and (place == home or self._is_package(place)) for place in places):
            return
        if self.inherited < MOST_INHERITED:
            known = len(self.found)
            self.inherited += 1
            where = " and ".join(sorted(self._shown(one) for one in places if one))
            name = name_of(base) if key is None else "%s.%s" % (name_of(base), key)
            names = module_of(base), name, where or "an unknown place", name_of(cls)
            self.note(
                "%s.%s of %s, which %s of %s inherits"
                % (names + (self._shown(home or file_of_class(cls)),)),
                d=None if value is None else digest(value),
                p=sorted(os.path.realpath(one) if one else "" for one in places),
                m=name,
                c=name_of(cls).rpartition(".")[2],
                f=os.path.realpath(home) if home else None,
            )
            self.inherited -= known == len(self.found)

    def _is_package(self, path):
        """Whether a file is of Python or of a folder of packages that was there from the start."""
        return path.startswith((STDLIB,) + self.packages) and is_installed(path)

    def _shown(self, path):
        """A path as people know it, wherever tests went since."""
        return os.path.relpath(path, self.folder)

    def _places(self, base, key, value):
        """The files that say what a class, or a member of it, is; None among them: that is unknown.

        What code says of itself, a module's name and a file's, can be written over. It counts where
        the text of that file says the same.
        """
        home = self._home(base)
        if key is None:
            return {home}
        text, functions = self._text(home), functions_in(value)
        is_other = not functions and "%s.%s" % (name_of(base), key) in text.functions
        if is_other or key not in text.classes.get(name_of(base), ()):
            home = None
        return {home}.union(map(self._file_of, functions))

    def _home(self, cls):
        """The file that defines a class by its text, as its module does; None for any other."""
        found, path = sys.modules.get(str(module_of(cls))), file_of_class(cls)
        for part in name_of(cls).split("."):
            found = getattr(found, "__dict__", {}).get(part)
        return path if found is cls and name_of(cls) in self._text(path).classes else None

    def _file_of(self, function):
        """The file of a function by its code, text and module; None where these do not agree."""
        code, space = function.__code__, function.__globals__
        path = os.path.abspath(code.co_filename)
        module = sys.modules.get(str(space.get("__name__")))
        is_of_module = getattr(module, "__dict__", None) is space and file_of(module) == path
        return path if is_of_module and self._text(path).has(code) else None

    def _text(self, path):
        """What the text of a file says, read once."""
        if path not in self.texts:
            self.texts[path] = Text(path)
        return self.texts[path]

    def _hooks_of_classes(self):
        """The names that pytest looks for in classes of tests, as its own code says them.

        The names of what its functions are handed stand there as well, and are none.
        """
        if self.hooks is None:
            self.hooks, handed = set(), set()
            for _, label, held in list(self.functions.values()):
                if label.startswith("_pytest."):
                    code = held[0]
                    handed.update(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
                if label.startswith("_pytest.python.Class."):
                    self.hooks |= texts_in(held[0])
            self.hooks -= handed
        return self.hooks

    def _own_class(self, cls, names):
        cell = self.own_cells.get(cls)
        if cell is not None and cell[0].value == cell[1]:
            return
        if self.cell is not None:
            cell = self.cell(cls)
            self.own_cells[cls] = cell, cell.value
        space = space_of(cls)
        now = {
            key: value
            for key, value in space.items()
            if (key in names or key.startswith("test")) and acts(value) and not is_of_c(value, cls)
        }
        before = self.known.get(cls)
        if before is None:
            self.known[cls] = now
            file = file_of_class(cls)
            for key, value in now.items():
                self._take_function("%s.%s" % (label_of(cls), key), value)
                if key.startswith("test") and not is_from(function_of(value), file):
                    self.note("%s.%s" % (label_of(cls), key))
            odd = [key for key in now if key in names and key not in UNIVERSAL]
            if odd:
                written = self._text(file).classes.get(name_of(cls), ())
                for key in odd:
                    if key not in written:
                        self.note("%s.%s" % (label_of(cls), key))
            return
        for key in set(now) | set(before):
            if now.get(key) is not before.get(key):
                self.note("%s.%s" % (label_of(cls), key))
        self.known[cls] = now

    def hooks_of_unittest(self):
        """Modules that unittest asks for tests: what their hook gives may be anything."""
        for name, module in list(sys.modules.items()):
            if not isinstance(module, types.ModuleType) or self.is_of_tool(name):
                continue
            found = vars(module).get("load_tests")
            if found is None and not is_installed(getattr(module, "__file__", None) or "<"):
                try:
                    found = getattr(module, "load_tests", None)
                except Exception:
                    pass
            if found is not None:
                self.note(name + ".load_tests", "")

    # -- what a test calls itself -----------------------------------------------------------------

    def library_of(self, function, file):
        """Look at the functions of Python that a test names: they are of Python, or the test's.

        `file` is the test's own; what it and its fixtures exchange is their affair.
        """
        if type(function) is not types.FunctionType:
            return
        names = names_in(function.__code__)
        self.called |= names
        self.test_files.add(file)
        for name in names:
            if name not in function.__globals__:
                if name in self.builtin:
                    self._library("builtins." + name, vars(builtins).get(name), names)
            elif is_of_python(function.__globals__[name]):
                self._library(name, function.__globals__[name], names)
        for name in self._parsed(file)[1]:
            self._helpers(sys.modules.get(name))

    def _helpers(self, module):
        """Look at the functions that a module defines, which a file of tests loads."""
        path = file_of(module)
        if path == "/" or is_installed(path) or path in self.test_files:
            return
        for key in self._parsed(path)[0]:
            value = vars(module).get(key)
            function = function_of(value)
            source = function and self._file_of(function)
            if source != path and source not in self.test_files and not (source and is_installed(source)):
                self.note("%s of %s" % (key, self._shown(path)), **self._from(source, path))

    def _from(self, source, place=None):
        """The fields of the file that something is from, and of the one that it should be from."""
        fields = {"p": [os.path.realpath(source) if source else ""]}
        if place:
            fields["f"] = os.path.realpath(place)
        return fields

    def _parsed(self, path):
        """Of a file: functions that it defines once, as they stand, and modules that it loads."""
        if path not in self.parsed:
            found = self.parsed[path] = ([], [])
            try:
                with open(path, "rb") as source:
                    body = ast.parse(source.read()).body
            except Exception:
                return found
            bound = []
            for node in body:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    bound.append(node.name)
                    found[0].extend(() if node.decorator_list else (node.name,))
                elif isinstance(node, ast.Import):
                    found[1].extend(each.name for each in node.names)
                elif isinstance(node, ast.ImportFrom):
                    name = node.module or ""
                    if node.level:
                        folder = os.path.dirname(path)
                        for _ in range(1, node.level):
                            folder = os.path.dirname(folder)
                        name = ".".join(filter(None, (self._package_at(folder), name)))
                    found[1].append(name)
                    found[1].extend("%s.%s" % (name, each.name) for each in node.names)
                else:
                    bound.extend(
                        each.id
                        for each in ast.walk(node)
                        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
                    )
            found[0][:] = [name for name in found[0] if bound.count(name) == 1]
        return self.parsed[path]

    def _package_at(self, folder):
        """The name of the package in a folder."""
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__path__", None)
            if path and not is_of_python(module) and os.path.abspath(list(path)[0]) == folder:
                return name
        return ""

    def whole_library(self):
        """Look at all classes of Python for methods that tests call of whatever they are given."""
        for name, module in list(sys.modules.items()):
            if type(module) is types.ModuleType and is_of_python(module):
                for cls in list(vars(module).values()):
                    if isinstance(cls, type) and cls.__module__ == name:
                        for key in self.called.intersection(vars(cls)):
                            label = "%s.%s.%s" % (name, cls.__name__, key)
                            self._library(label, vars(cls)[key], ())

    def _library(self, label, value, names, depth=0):
        if isinstance(value, (types.ModuleType, type)):
            spaces = [vars(base) for base in value.__mro__] if isinstance(value, type) else [vars(value)]
            for space in spaces if names and depth < 3 else ():
                for key in names.intersection(space):
                    inner = space[key]
                    if not isinstance(inner, types.ModuleType) or is_of_python(inner):
                        self._library("%s.%s" % (label, key), inner, names, depth + 1)
            return
        function = function_of(value)
        if function is not None:
            source = function.__code__.co_filename
            source = "/" if source.startswith("<") else os.path.abspath(source)
        else:
            source = file_of(sys.modules.get(type(value).__module__)) if callable(value) else "/"
        if source != "/" and not is_installed(source):
            source = self._file_of(function) if function else self._home(type(value))
            if source not in self.test_files:
                self.note(label, **self._from(source))

    # -- pytest -----------------------------------------------------------------------------------

    def pytest_items(self, items):
        """The tests that were collected: their functions stay what they are."""
        self.items = {}
        for item in items:
            function = tested(item)
            if function is not None:
                self._take_function("the function of " + item.nodeid, function)
                if getattr(item, "cls", None) is None and not is_from(function, file_of(getattr(item, "module", None))):
                    self.note("the function of " + item.nodeid, "")
            self.items[item.nodeid] = item, function

    def pytest_item(self, nodeid, where, ran=False):
        """Look at one test: before it runs at its function, afterwards at its class.

        Afterwards means before fixtures are torn down, as the test's own object is gone then.
        """
        item, function = self.items.get(nodeid, (None, None))
        if item is None or not self.closed:
            return
        self.where = where
        if not ran and tested(item) is not function:
            self.note("the function of " + nodeid)
        if "runtest" in vars(item):
            self.note("runtest() of " + nodeid)
        self.library_of(function, file_of(getattr(item, "module", None)))
        if getattr(item, "cls", None) is not None:
            self.test_case(item.cls, vars(item).get("_instance") if ran else None)

    def pytest_plugins(self, manager):
        """Look at plug-ins that are of the project, and at hooks in them that are not their own."""
        for name, plugin in manager.list_name_plugin():
            if plugin is None or name == "agentrunner_results":
                continue
            module = plugin if isinstance(plugin, types.ModuleType) else None
            file = file_of(module or sys.modules.get(type(plugin).__module__))
            if not file or is_installed(file):
                continue
            kind = self._shown(file) if module else label_of(type(plugin))
            source = file if module else self._home(type(plugin))
            self.note("pytest's plug-in " + kind, "", **self._from(source))
            for key, value in list(vars(module).items()) if module else ():
                function = function_of(value) if key.startswith("pytest_") else None
                source = function and self._file_of(function)
                if function and source != file and not (source and is_installed(source)):
                    self.note("%s of %s" % (key, self._shown(file)), "", **self._from(source, file))


def tested(item):
    """The function of a test of pytest."""
    name = getattr(item, "originalname", None) or item.name
    cls = getattr(item, "cls", None)
    return function_of(vars(item).get("_obj") if cls is None else getattr(cls, name, None))


def is_from(function, file):
    """Whether a function, or what it wraps, stands in this file; also where that is not known."""
    seen = []
    while type(function) is types.FunctionType and function not in seen:
        if is_installed(function.__code__.co_filename):
            return True
        if os.path.abspath(function.__code__.co_filename) == file:
            return True
        seen.append(function)
        function = getattr(function, "__wrapped__", None)
    return not seen or not file or file == "/"


def file_of(module):
    return os.path.abspath(getattr(module, "__file__", None) or "/")


def file_of_class(cls):
    """The file of the module that a class names."""
    return file_of(sys.modules.get(str(module_of(cls))))


def is_among(one, several):
    """Whether it is one of them itself: classes can say that they equal others."""
    return any(one is each for each in several)


def acts(value):
    """Whether Python or a tool that finds a value in a class runs code by it."""
    return callable(value) or any("__get__" in space_of(kind) for kind in mro_of(type(value)))


def is_of_c(value, cls):
    """Whether a member of a class was made with it in C; also what gives its `__dict__`."""
    return type(value) in OF_C and value.__objclass__ is cls


def is_of_python(value):
    """Whether a module, or a class by its module, is of Python's own library."""
    module = value if isinstance(value, types.ModuleType) else None
    if isinstance(value, type):
        module = sys.modules.get(value.__module__)
    if module is None:
        return False
    file = getattr(module, "__file__", None)
    if not file:
        return module.__name__ in sys.builtin_module_names
    return file.startswith(STDLIB) and "-packages/" not in file


def names_in(code):
    """The names that a function uses, and the functions in it."""
    found = set(code.co_names)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            found |= names_in(each)
    return found


def texts_in(code):
    """The texts that a function says, and the functions in it."""
    found = set()
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            found |= texts_in(each)
        else:
            several = each if isinstance(each, tuple) else (each,)
            found.update(one for one in several if isinstance(one, str))
    return found


def text_of(code):
    """What a function does, wherever it stands; its docstring is no part of that."""
    return code.co_names, [
        (one.opname, constant(one.argval) if one.opcode in dis.hasconst else one.arg)
        for one in dis.get_instructions(code)
        if one.opname != "EXTENDED_ARG"
    ]


def constant(value):
    """A constant of code, the same in each process."""
    if isinstance(value, types.CodeType):
        return text_of(value)
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    return list(map(constant, value)) if isinstance(value, tuple) else repr(value)


def parts_of(value):
    """What decides, of a value that is no plain one, what it does."""
    if type(value) in (classmethod, staticmethod):
        return [value.__func__]
    if type(value) is types.MethodType:
        return [value.__func__, value.__self__]
    if type(value) is property:
        return [value.fget, value.fset, value.fdel]
    if type(value) in PARTIAL:
        return [value.func, value.args, getattr(value, "keywords", None)]
    if type(value) is types.FunctionType:
        return inside(value)[1:]
    if type(value) in (tuple, list):
        return list(value)
    if type(value) is dict:
        return sorted(value.items(), key=lambda item: repr(item[0]) if type(item[0]) in PLAIN else "")
    if isinstance(value, type):
        return sorted(
            ((key, one) for key, one in space_of(value).items() if function_of(one)),
            key=itemgetter(0),
        )
    if isinstance(value, types.ModuleType):
        return []
    try:
        return [type(value), object.__getattribute__(value, "__dict__")]
    except AttributeError:
        return [type(value)]


def content(value, depth=0):
    """What a value says, as a structure that is the same in each process."""
    if type(value) in PLAIN:
        return repr(value)
    name = label_of(value if isinstance(value, type) else type(value))
    if depth == DEEPEST:
        return name
    own = text_of(value.__code__) if type(value) is types.FunctionType else ()
    return name, own, [content(each, depth + 1) for each in parts_of(value)]


def digest(value):
    """A short text that differs where what a value does differs."""
    return sha256(repr(content(value)).encode("utf-8", "replace")).hexdigest()[:16]


def functions_in(value, depth=0):
    """The functions that a value runs where it is called or looked up, as far as it shows them."""
    if type(value) is types.FunctionType:
        return [value]
    if depth == DEEPEST or type(value) in PLAIN or isinstance(value, type):
        return []
    return [one for each in parts_of(value) for one in functions_in(each, depth + 1)]


def is_fixture(value):
    """Whether a member of a class is a fixture of pytest."""
    return type(value).__module__ == "_pytest.fixtures" or "_pytestfixturefunction" in dir(value)


UNIVERSAL = frozenset(vars(object)) | {"__init_subclass__", "__module__", "__doc__", "__dict__"}


class Text:
    """What the text of a file says of its classes and functions, whatever runs under its name."""

    def __init__(self, path):
        self.path = path
        self.classes = {}
        """Names that the bodies of classes store, by the qualified names of these."""
        self.codes = {}
        """Codes of functions by their name."""
        self.functions = set()
        """The qualified names of functions."""
        self.rewritten = False
        """Whether the codes that pytest makes of assertions are among them."""
        try:
            with open(path, "rb") as source:
                self.source = source.read()
            self._add(self._compiled(), "")
        except Exception:
            self.source = b""

    def _compiled(self, rewrite=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(self.source)
            if rewrite is not None:
                rewrite(tree, self.source, self.path)
            return compile(tree, self.path, "exec", dont_inherit=True)

    def _add(self, code, outer):
        for each in code.co_consts:
            if not isinstance(each, types.CodeType):
                continue
            name = outer + each.co_name
            if each.co_name.startswith("<generic parameters of "):
                self._add(each, outer)
            elif each.co_flags & 1:  # It has fast locals: a function, and no body of a class.
                self.codes.setdefault(each.co_name, []).append(each)
                self.functions.add(name)
                self._add(each, name + ".<locals>.")
            else:
                stored = [one.argval for one in dis.get_instructions(each) if one.opname == "STORE_NAME"]
                self.classes.setdefault(name, set()).update(stored)
                self._add(each, name + ".")

    def has(self, code):
        """Whether a function of the text does just that."""
        if "@pytest_ar" in code.co_names and not self.rewritten:
            self.rewritten = True
            try:
                rewrite = sys.modules["_pytest.assertion.rewrite"].rewrite_asserts
                self._add(self._compiled(rewrite), "")
            except Exception:
                pass
        known = self.codes.get(code.co_name, ())
        return any(one is code or text_of(one) == text_of(code) for one in known)


def label_of(cls):
    return "%s.%s" % (module_of(cls), name_of(cls))
