"""The report: what the index holds, how it grew, how fresh, how good and how costly it is, as a page and a picture.

What reads databases or Dagster does not belong here: facts come in, HTML and PNG go out. matplotlib is loaded when
the first picture is drawn.
"""

from rag_pipeline.reporting.files import Written, write_report
from rag_pipeline.reporting.gather import gather
from rag_pipeline.reporting.markdown import markdown
from rag_pipeline.reporting.page import page
from rag_pipeline.reporting.picture import picture
from rag_pipeline.reporting.summary import Report, Reuse, Summary, summarise

__all__ = [
    "Report",
    "Reuse",
    "Summary",
    "Written",
    "gather",
    "markdown",
    "page",
    "picture",
    "summarise",
    "write_report",
]
