"""The report: a look at the whole, as a picture and tables in the UI and as a page on disk."""

import base64
from datetime import timedelta

import dagster as dg

from rag_pipeline.defs.failures import stage_errors
from rag_pipeline.defs.metadata import Metadata, Result
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.defs.reuse import reuse_history
from rag_pipeline.reporting import Report, Summary, Written, gather, markdown, page, picture, summarise, write_report

PIPELINE_REPORT = "pipeline_report"


def pipeline_report_asset() -> dg.AssetsDefinition:
    """`pipeline_report`: unpartitioned, by hand or on its schedule."""

    @dg.asset(
        name=PIPELINE_REPORT, deps=["knowledge_index", "retrieval_evaluation"], group_name="overview",
        kinds={"html", "postgres"}, owners=["team:knowledge"], tags={"stage": "report"}, code_version="1",
        description=(
            "What the index holds by source, how it grew, how fresh each source is, how well questions were answered "
            "over time, how many vectors were reused, what it cost, and what waits in quarantine. A picture and tables "
            "here, its numbers as plots, and a page in RAG_HOME/reports for everybody else."
        ),
    )  # fmt: skip
    def pipeline_report(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> Result:
        now, days = pipeline.clock(), pipeline.settings.report.days
        with stage_errors(context), pipeline.stage("report") as connection:
            reuse = reuse_history(context.instance, since=now - timedelta(days=days))
            report = gather(connection, pipeline.lake(), days=days, reuse=reuse, now=now)
            drawn = picture(report)
            written = write_report(pipeline.settings.home / "reports", page=page(report), picture=drawn)
        summary = summarise(report)
        pipeline.reports["report"] = summary
        context.log.info(f"the report is in {written.page}")
        return dg.MaterializeResult(metadata=_metadata(report, summary, written, drawn))

    return pipeline_report


def _metadata(report: Report, summary: Summary, written: Written, drawn: bytes) -> Metadata:
    s = summary
    metadata: Metadata = {
        "overview": dg.MetadataValue.md(
            f"![overview](data:image/png;base64,{base64.b64encode(drawn).decode()})"
            if s.documents else "The index is empty: materialize the refresh job."
        ),
        "page": dg.MetadataValue.path(written.page),
        "picture": dg.MetadataValue.path(written.picture),
        "documents": dg.MetadataValue.int(s.documents),
        "chunks": dg.MetadataValue.int(s.chunks),
        "tokens": dg.MetadataValue.int(s.tokens),
        "repositories": dg.MetadataValue.int(s.sources),
        "failures_waiting": dg.MetadataValue.int(s.failures),
        "cost_this_month_usd": dg.MetadataValue.float(round(s.cost_usd, 6)),
        "database_bytes": dg.MetadataValue.int(s.database_bytes),
        "lake_bytes": dg.MetadataValue.int(s.lake_bytes),
        "report": dg.MetadataValue.md(markdown(report)),
        # The UI shows no HTML; who has no access to the file takes the page from here.
        "html": dg.MetadataValue.json({"html": page(report)}),
    }  # fmt: skip
    # A number that is not known is left out: a zero in Dagster's plots would be a lie.
    if s.largest_lag is not None:
        metadata["largest_lag_hours"] = dg.MetadataValue.float(round(s.largest_lag.total_seconds() / 3600, 2))
    if s.quality is not None:
        metadata["ndcg_at_10"] = dg.MetadataValue.float(round(s.quality, 4))
    if s.reuse_share is not None:
        metadata["reused_share"] = dg.MetadataValue.float(round(s.reuse_share, 4))
    return metadata
