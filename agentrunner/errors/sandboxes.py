"""Errors of sandboxes, their images and their gateway."""

from __future__ import annotations

from agentrunner.errors.error import InfraError, UsageError


class SandboxUnavailable(InfraError):
    """No sandbox of the kind that was asked for can be opened here. The message has the
    helper's own words.

    `agentrunner doctor` tells what it needs. `--sandbox none` isolates nothing
    and is only taken by name.
    """


class EngineAway(SandboxUnavailable):
    """As SandboxUnavailable, of a container engine that gives no answer: it may be starting."""

    code = SandboxUnavailable.code
    passes = True


class SandboxBroken(InfraError):
    """The sandbox died or could not run a command. The run is kept.

    `agentrunner doctor`, then `agentrunner resume`.
    """

    code = "sandbox-infra"
    passes = True


class BadSandboxRequest(InfraError):
    """The sandbox was asked for something it does not do, for example a working folder that is
    not there.

    Look at `cwd` of the check or command that the message names: a folder of the repository,
    relative to its top. `agentrunner validate FILE` shows how each was read.
    """

    code = "sandbox-invalid-request"
    old_codes = ("sandbox-invalid_request",)


class SandboxTimeout(InfraError):
    """A command in the sandbox ran into its time limit and was ended.

    Raise `timeout_sec` where the command is set.
    """

    passes = True


class SandboxUndecided(InfraError):
    """A command in the sandbox came to no result, for a reason that could not be told.

    `agentrunner logs`, then `agentrunner resume`.
    """

    code = "sandbox-unknown"
    passes = True


class EnvironmentNotReady(InfraError):
    """The set-up command fails in the sandbox, or the test command or a check cannot start
    there: its program, interpreter or test runner is not there, no tests ran, or all of them
    fail for a package that a manifest names and that is not installed. This is found out before
    the first model call, so nothing was spent.

    Install what is missing with `task.setup.command`, show a folder of this machine
    with `runner.sandbox.read_paths`, or fix the command. `agentrunner doctor` tries the test
    command in the sandbox. A test that fails is no such error. Where the run is
    to write the first tests, say `test: {command: …, baseline: false}`.

    A set-up has no network but for the hosts that it is given: `setup: {command: npm ci,
    network: ["registry.example.org:443"]}`, or `--set 'task.setup.network=[…]'`. Package
    managers may try for minutes before they say that they reach nothing.
    """


class GatewayFailed(InfraError):
    """The process that lets a sandbox reach its model and its allowed hosts did not start, or
    ended while a command in the sandbox needed it. What that command did proves nothing, so it
    is not counted.

    The message has the process's own words. `agentrunner resume` runs the command again;
    `agentrunner doctor --sandbox KIND` tries the way out of a sandbox on this machine. If the
    words name a host, look at `network` in the task file: `host:port`, `*.domain:port` or
    `host:port@address`. If they name a proxy: only one at `http://…` in `HTTPS_PROXY` can be
    gone through.
    """

    code = "gateway"
    passes = True


class WrongArchitecture(SandboxUnavailable):
    """The image is made for another kind of processor or system than this machine has.

    Fetch the variant for this machine with `docker pull --platform`, or build the image here
    with `agentrunner image build`. `uname -m` names this machine's architecture.
    """

    code = "image-architecture"


class ImageBuildFailed(SandboxUnavailable):
    """The build of an image failed. The message has the engine's words and the end of what the
    build printed.

    For an image of ours: is the base there, or can it be fetched, and can the build reach the
    packages' registry? `--base` names another base: any with Node.js and apt does. For the
    repository's own: try `docker build`, and fix what it says.
    """


class WrongDigest(SandboxUnavailable):
    """The task names an image by its digest (`name@sha256:…`), and what the engine has under
    that name is another one. Nothing was started.

    Look where it came from before anything else. Then remove it and fetch it again.
    """

    code = "image-digest"


class BadImageHelper(SandboxUnavailable):
    """Docker's settings (`~/.docker/config.json`) name a program that keeps the credentials of
    image registries, `docker-credential-NAME`. `PATH` leads to one inside the repository, or by
    way of a relative folder such as `.`: it would have been started on this machine, and given
    credentials. Nothing was started.

    Take the repository and relative folders out of `PATH`, or fetch the image yourself
    (`docker pull`) and start the run again.
    """

    code = "image-helper"


class ImageMissing(SandboxUnavailable):
    """The image that a container needs is not on the engine, and nothing was said about
    fetching it. A run never fetches or builds one by itself: that can take minutes, and decides
    what code runs. The message says which image it is and why this one.

    The command that the message names: it fetches the image, or builds one of ours or of the
    repository. Or let the task say `runner.sandbox.pull: missing`. `agentrunner doctor` lists
    the images that are there.
    """


class BadImageName(UsageError):
    """A text cannot be the name of an image.

    Write it as `docker pull` takes it: `name:tag`, `registry/name:tag`, or
    `name@sha256:…` for exactly one image.
    """

    code = "image-name"


class ImagePullFailed(SandboxUnavailable):
    """The engine could not fetch an image. The message has its words: the image does not exist,
    its registry wants a login, or it cannot be reached from here.

    Try the same with `docker pull`, which may tell more; `docker login` where the
    registry asks for it. Where none can be reached, `docker load` takes an image from a file, and
    `agentrunner image build host` makes one out of nothing.
    """


class BadImageSource(UsageError):
    """No image can be made from the file that `runner.sandbox.image_from` (or `--from`) names.
    It must be a Dockerfile or a devcontainer.json inside of the repository; a devcontainer may
    name an image, or a Dockerfile with its context, plain arguments and target. Features and
    Compose files are not understood, as without them the image would lack something without a
    word.

    What the message says; or build the image with the tool it is for, and name it in
    `runner.worker.docker_image`.
    """

    code = "image-source"
