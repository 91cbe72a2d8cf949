"""What calls cost: a table of list prices, overridden by the user's own.

A table gives, per model, the price of a million tokens in US dollars:

    models:
      gpt-5.1: {input: 1.25, cached: 0.125, output: 10}
      my-model: {input: 0, output: 0}
      gpt-5.2: null        # not known, whatever the built-in table says

Without a price of their own, `cached` (read from the provider's cache) and `cache_write` cost what
`input` costs. `long` has the prices of a call that reads more than `long.over` tokens.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import yaml
from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentrunner.errors import UsageError
from agentrunner.errors.runs import BadPrices
from agentrunner.gateway.wires import CallTokens
from agentrunner.text.lazy_regex import lazy_regex

_Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Rates(BaseModel):
    """US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: _Usd
    output: _Usd
    cached: _Usd | None = None
    cache_write: _Usd | None = None

    def cost(self, tokens: CallTokens) -> float:
        """Return US dollars."""
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        fresh = max(0, tokens.input - tokens.cached - tokens.cache_write)
        return (
            fresh * self.input
            + tokens.cached * cached
            + tokens.cache_write * written
            + tokens.output * self.output
        ) / 1e6


class LongRates(Rates):
    """The prices of a call that reads more than `over` tokens."""

    over: int = Field(gt=0)


class Price(Rates):
    """A model's price."""

    long: LongRates | None = None

    def of(self, tokens: CallTokens) -> float:
        """Return US dollars of one call."""
        long = self.long
        return (long if long and tokens.input > long.over else self).cost(tokens)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")

    as_of: str = ""
    models: dict[str, Price | None]


class Prices(Struct, frozen=True):
    """Prices by model name."""

    models: Mapping[str, Price | None] = field(default_factory=dict)
    as_of: str = ""
    """The month of the built-in table; prices may have changed since."""

    own: frozenset[str] = frozenset()
    """Names that the user's own table has."""

    def price(self, model: str) -> Price | None:
        """Return the price of a model: by its exact name, or by the longest known name that it
        starts with if only a date or "latest" follows. None if it is unknown: another suffix
        means another model, with another price."""
        found = self._name(model)
        return None if found is None else self.models[found]

    def _name(self, model: str) -> str | None:
        return max(
            (name for name in self.models if _is_version_of(model, name)), key=len, default=None
        )

    def is_free(self, model: str, *, near: bool) -> bool:
        """Whether a call costs nothing: of a server that is `near`, unless the user's own table
        names the model."""
        return near and self._name(model) not in self.own

    def cost(self, model: str, tokens: CallTokens | None, *, near: bool = False) -> float | None:
        """Return US dollars of one call; None if tokens or price are unknown.

        `near` is whether a server of this machine or of its network answered.
        """
        if self.is_free(model, near=near):
            return 0.0
        price = self.price(model)
        return None if price is None or tokens is None else price.of(tokens)


_one_at_a_time = threading.Lock()


def load_prices(own: Path | None = None) -> Prices:
    """Return the built-in table, overridden by the user's own.

    Raises UsageError (`prices-invalid`) for a file that cannot be read or is not a table of prices.
    """
    with _one_at_a_time:  # runs that begin together share it
        built_in = _built_in()
    if own is None:
        return built_in
    theirs = _own(own).models
    return Prices({**built_in.models, **theirs}, built_in.as_of, frozenset(theirs))


@cache
def _built_in() -> Prices:
    text = resources.files(__package__).joinpath("prices.yaml").read_text("utf-8")
    table = _Table.model_validate(yaml.load(text, Loader=yaml.CSafeLoader))
    return Prices(table.models, table.as_of)


def _own(path: Path) -> _Table:
    try:
        return _Table.model_validate(yaml.safe_load(path.read_text("utf-8")))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _invalid(path, f"{place}: {first['msg']}" if place else first["msg"]) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise _invalid(path, " ".join(str(error).split())) from None


def _invalid(path: Path, why: Any) -> UsageError:
    return BadPrices(
        f"The prices in {path} cannot be used: {why}",
        path=str(path),
        remedy='write "models: {MODEL: {input: 1.25, output: 10}}", in dollars per million tokens',
    )


_VERSION = lazy_regex(r"[-@](?:latest|\d{4,8}(?:-\d\d-\d\d)?)")


def _is_version_of(model: str, name: str) -> bool:
    rest = model.removeprefix(name)
    return model == name or (rest != model and _VERSION.fullmatch(rest) is not None)
