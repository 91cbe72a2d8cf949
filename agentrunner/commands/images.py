"""`image`: build images that workers run in."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agentrunner.commands import options as opt
from agentrunner.commands.console import show, show_json, tell
from agentrunner.commands.which_run import here
from agentrunner.errors import UsageError
from agentrunner.errors.command_line import BadOption, UnknownKind
from agentrunner.errors.sandboxes import BadImageName
from agentrunner.screens.layout import flat
from agentrunner.text.likeness import likest

if TYPE_CHECKING:
    from agentrunner.sandboxes.docker.builds import ImageBuild

HOST = "host"


def image(
    action: Annotated[Literal["build"], typer.Argument(metavar="build", help="What to do.")],
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="Worker kind, all-in-one (the default), or host: nothing but this machine's /usr.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FILE", help="This repository's Dockerfile or devcontainer."
        ),
    ] = None,
    base: Annotated[
        str | None, typer.Option("--base", metavar="IMAGE", help="Use this base image.")
    ] = None,
    build_args: Annotated[
        list[str] | None,
        typer.Option("--build-arg", metavar="NAME=VALUE", help="For the Dockerfile; no secrets."),
    ] = None,
    own: Annotated[
        bool, typer.Option("--self", help="An image with this AgentRunner in it, to run it in.")
    ] = False,
    tag: Annotated[str | None, typer.Option("--tag", metavar="NAME", help="Use this name.")] = None,
    as_json: opt.OneJson = False,
) -> int:
    """Build an image on the container engine, with its progress on stderr.

    The build has a network. It is sent the Dockerfile alone, or with --from also the files around
    it, whose commands it runs.
    """
    name = _checked(tag) if tag else ""
    args = _build_args(base, build_args or [])
    if own and (kind is not None or source is not None):
        raise UsageError("--self says what is built: give no KIND and no --from with it.")
    if kind == HOST:
        if source or args:
            raise UsageError("the image `host` is made of nothing; it has no options but --tag.")
        return asyncio.run(_import_host(name, as_json))
    if source is not None and (kind is not None or base is not None):
        raise UsageError("--from says what is built: give no KIND and no --base with it.")
    if own:
        from agentrunner.sandboxes.docker.builds import order_self

        order = order_self(name, args)
    elif source:
        order = _from_repository(source, args, name)
    else:
        order = _from_recipe(kind, args, name)
    with order.context:
        return asyncio.run(_build(order, as_json))


def _from_recipe(kind: str | None, args: Mapping[str, str], name: str) -> ImageBuild:
    from agentrunner.sandboxes.docker.builds import order_recipe
    from agentrunner.sandboxes.docker.recipes import ALL_IN_ONE, RECIPES

    wanted = kind or ALL_IN_ONE.kind
    if wanted not in RECIPES:
        near = likest(wanted, [*RECIPES, HOST])
        raise UnknownKind(
            f'there is no image "{wanted}". Known: {", ".join([*RECIPES, HOST])}.',
            remedy=f"did you mean {near}?" if near else "",
        )
    return order_recipe(RECIPES[wanted], name, args)


def _from_repository(source: str, args: Mapping[str, str], name: str) -> ImageBuild:
    from msgspec.structs import replace

    from agentrunner.config.repo import git_root
    from agentrunner.sandboxes.docker.builds import order_repository
    from agentrunner.sandboxes.docker.sources import pack, read_source

    file = Path.cwd() / source
    repo = git_root(file.parent) or here()
    found = read_source(file, repo)
    if isinstance(found, str):
        raise UsageError(
            f"{source} names the image {found}; there is nothing to build.",
            remedy=f"docker pull {found}",
        )
    found = replace(found, args={**found.args, **args})
    context, usual = pack(found, repo)
    return order_repository(found, context, name or usual)


async def _build(order: ImageBuild, as_json: bool) -> int:
    from agentrunner.sandboxes.docker.builds import build
    from agentrunner.sandboxes.docker.engine import Engine
    from agentrunner.sandboxes.docker.images import check_helpers, find_image

    check_helpers(here())
    with contextlib.closing(await Engine.connect(os.environ)) as engine:
        await build(engine, order, lambda line: show(flat(line), sys.stderr))
        made = await find_image(engine, order.name)
    if as_json:
        return show_json({"image": order.name, "id": made.id if made else None})
    tell(f"Built {order.name}, {made.id if made else 'and it is gone already'}.")
    return 0


async def _import_host(name: str, as_json: bool) -> int:
    from agentrunner.sandboxes.docker.builds import import_host_image
    from agentrunner.sandboxes.docker.engine import Engine
    from agentrunner.sandboxes.docker.images import find_image
    from agentrunner.sandboxes.docker.recipes import HOST_IMAGE

    name = name or HOST_IMAGE
    with contextlib.closing(await Engine.connect(os.environ)) as engine:
        await import_host_image(engine, name)
        made = await find_image(engine, name)
    if as_json:
        return show_json({"image": name, "id": made.id if made else None})
    show(
        f"Made {name}. In the task file:\n"
        f"  runner:\n    worker: {{docker_image: {name}}}\n    sandbox: {{read_paths: [/usr]}}"
    )
    return 0


def _build_args(base: str | None, given: Sequence[str]) -> dict[str, str]:
    args = {"BASE": base} if base is not None else {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name.isidentifier() or not equals:
            raise BadOption(
                f'"{text}" is no NAME=VALUE.',
                path="--build-arg",
                remedy=f"--build-arg {name or 'NAME'}=VALUE",
            )
        args[name] = value
    return args


def _checked(tag: str) -> str:
    from docker.utils.build import match_tag

    if not match_tag(tag):
        raise BadImageName(f'"{tag}" cannot be the name of an image.', path="--tag")
    return tag
