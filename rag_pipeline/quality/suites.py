"""Which suite belongs to which stage, with what the settings accept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_pipeline.errors import ConfigError
from rag_pipeline.quality.chunks import chunks_suite
from rag_pipeline.quality.documents import documents_suite
from rag_pipeline.quality.embeddings import embeddings_rules
from rag_pipeline.quality.expectations import Rule
from rag_pipeline.quality.knowledge_index import index_rules
from rag_pipeline.quality.parts import PartSuite
from rag_pipeline.quality.raw import raw_suite
from rag_pipeline.quality.volume import volume_rules
from rag_pipeline.settings import Settings
from rag_pipeline.sources.drops.stage import STAGE as DROPS_STAGE
from rag_pipeline.sources.kinds.registry import blocks_of, kinds, raw_stages
from rag_pipeline.sources.kinds.stage import first_day_of

RAW_STAGES = raw_stages()


def part_suites(settings: Settings) -> dict[str, PartSuite]:
    """The suites over parts of the lake, by stage."""
    first_days = {(r.tenant, r.name): settings.first_day_of(r) for r in settings.repositories}
    first_days |= {(b.tenant, b.name): first_day_of(b, settings) for k in kinds() for b in blocks_of(k, settings)}
    suites = [raw_suite(stage, first_days=first_days, drops=stage == DROPS_STAGE) for stage in RAW_STAGES]
    suites += [documents_suite(settings), chunks_suite(settings)]
    accepted = settings.quality.accepted
    return {s.stage: replace(s, rules=with_accepted(s.rules, stage=s.stage, accepted=accepted)) for s in suites}


def raw_volume_rules(settings: Settings, stage: str) -> Sequence[Rule]:
    """The rules about how many items a raw stage has."""
    return with_accepted(volume_rules(settings.quality), stage=stage, accepted=settings.quality.accepted)


def with_accepted(rules: Sequence[Rule], *, stage: str, accepted: Sequence[str]) -> tuple[Rule, ...]:
    """The rules of a stage, of which those that somebody accepts do not block."""
    return tuple(rule.accept() if f"{stage}.{rule.name}" in accepted else rule for rule in rules)


def rules_by_stage(settings: Settings) -> dict[str, Sequence[Rule]]:
    """Every rule that there is."""
    rules: dict[str, Sequence[Rule]] = {stage: suite.rules for stage, suite in part_suites(settings).items()}
    own = {"embeddings": embeddings_rules(settings), "knowledge_index": index_rules(settings)}
    accepted = settings.quality.accepted
    rules |= {stage: with_accepted(found, stage=stage, accepted=accepted) for stage, found in own.items()}
    return rules | {stage: (*rules[stage], *raw_volume_rules(settings, stage)) for stage in RAW_STAGES}


def require_known(accepted: Sequence[str], rules: Mapping[str, Sequence[Rule]]) -> None:
    """Every finding that the settings accept is one that there is.

    Raises:
        ConfigError: names the one that is not, and those there are.
    """
    known = sorted(f"{stage}.{rule.name}" for stage, found in rules.items() for rule in found)
    for name in accepted:
        if name not in known:
            raise ConfigError(f"quality.accepted: there is no finding {name!r}: choose from {', '.join(known)}")
