"""What every mapping of a scenario has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A mapping of the scenario: frozen, and unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_alias=True, serialize_by_alias=True)
