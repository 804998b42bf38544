"""The `[budget]` section: what may be spent before a run is stopped."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from rag_pipeline.settings.sections import Section


class Limits(Section):
    """What may be spent for one tenant; None: as much as it takes."""

    run_usd: float | None = Field(default=None, ge=0)
    """By one run."""
    run_tokens: int | None = Field(default=None, ge=0)
    month_usd: float | None = Field(default=None, ge=0)
    """By all runs of a month (UTC) together."""
    month_tokens: int | None = Field(default=None, ge=0)

    @property
    def limits_money(self) -> bool:
        """Whether a price has to be known to tell what is left."""
        return self.run_usd is not None or self.month_usd is not None

    @property
    def limits_anything(self) -> bool:
        """Whether there is a budget at all."""
        return self.limits_money or self.run_tokens is not None or self.month_tokens is not None


class Budget(Limits):
    """What holds for each tenant, and what holds for some instead."""

    tenants: Mapping[str, Limits] = {}
    """By tenant: what is set here takes the place of what holds for all."""

    def of(self, tenant: str) -> Limits:
        """What may be spent for a tenant."""
        general = {name: getattr(self, name) for name in Limits.model_fields}
        own = self.tenants.get(tenant, Limits()).model_dump(exclude_none=True)
        return Limits.model_validate(general | own)
