FROM python:3.12-slim

# git: repositories are cloned and read with it. Mounted ones belong to other users, and are only read.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && git config --system --add safe.directory '*'

WORKDIR /opt/rag-pipeline
# requirements-celery.lock for workers over Redis, requirements-kubernetes.lock for runs as Kubernetes jobs.
ARG REQUIREMENTS=requirements.lock
COPY requirements.lock requirements-celery.lock requirements-kubernetes.lock ./
RUN pip install --no-cache-dir --no-deps --require-hashes --requirement "$REQUIREMENTS"

COPY pyproject.toml README.md dagster.yaml workspace.yaml ./
COPY sql sql
COPY rag_pipeline rag_pipeline
RUN pip install --no-cache-dir --no-deps --no-build-isolation .
# The container runs what was installed, never the sources in the working directory.
RUN rm -rf rag_pipeline sql

RUN useradd --uid 10001 --create-home rag && install --directory --owner=rag /var/lib/rag
USER rag
ENV DAGSTER_HOME=/opt/rag-pipeline \
    RAG_HOME=/var/lib/rag \
    RAG_DAGSTER_STORAGE=/var/lib/rag/dagster \
    DAGSTER_EVENT_BATCH_SIZE=1000 \
    DAGSTER_EMIT_PARTITION_SUBSET_IN_PLANNED_EVENTS=true \
    DAGSTER_DISABLE_TELEMETRY=yes \
    PYTHONUNBUFFERED=1
VOLUME /var/lib/rag

CMD ["rag-pipeline", "--help"]
