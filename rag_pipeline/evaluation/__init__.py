"""Labelled questions to metrics: how good the index is at answering, by the field's own measures.

Labels, rankings, measures and comparisons are pure; `corpus` fills a scratch database, `indexed` asks the index.
"""
