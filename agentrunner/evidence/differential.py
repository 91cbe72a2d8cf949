"""Old inputs on the new product, and new tests on the old code. Everything here blocks."""

from __future__ import annotations
