"""What must be true of each stage's data: suites of expectations in code, one module per stage, and their runner.

Arrow and PostgreSQL do the counting and hand over a small frame; Great Expectations judges it. Thresholds are settings.
"""

from rag_pipeline.quality.expectations import Finding, Outcome, Rule, validate
from rag_pipeline.quality.parts import Checked, Measured, PartSuite, check_parts

__all__ = ["Checked", "Finding", "Measured", "Outcome", "PartSuite", "Rule", "check_parts", "validate"]
