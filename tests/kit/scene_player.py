"""A planner that gives each scene's own answer, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from agentrunner.config.spec import TaskSpec
from agentrunner.errors.replies import ReplyQuestioned
from agentrunner.planners.base import PlannerRequest, Reply
from agentrunner.scenes.playing import reference_script
from agentrunner.scenes.scene import Named


class ScenePlayer:
    """Kind `scene-player` of tests; `scenes` are those that will be played, in their order."""

    kind = "scene-player"
    scenes: ClassVar[list[Named]] = []
    asked: ClassVar[list[PlannerRequest]] = []

    def __init__(self, spec: TaskSpec, environ: Mapping[str, str]) -> None:
        self._items: list[dict[str, Any]] = json.loads(reference_script(self.scenes))
        self._given: dict[str, Any] = {}

    def describe(self) -> str:
        return "scene-player"

    async def complete(self, request: PlannerRequest) -> Reply:
        self.asked.append(request)
        if f"{ReplyQuestioned.fault} at" not in request.messages[-1].content:
            self._given = self._items.pop(0)  # who is asked back says the same again
        assert self._given["expect"] == request.type
        return Reply(json.dumps(self._given["reply"], ensure_ascii=False))

    async def close(self) -> None:
        pass
