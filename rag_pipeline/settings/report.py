"""Settings of the report and of what the asset catalog links to."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from rag_pipeline.settings.sections import Section, web_address


class Report(Section):
    """What the report covers, and where people can read this code."""

    days: int = Field(default=90, ge=7, le=3650)
    """How far back growth, cost, reuse and retrieval quality are shown."""
    code_url: Annotated[str, AfterValidator(web_address)] = ""
    """Where this code can be read, such as `https://github.com/acme/rag-pipeline/blob/main`: assets link there instead
    of to the files on this machine."""
