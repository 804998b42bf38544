"""Labelled queries to metrics: how good a ranking is, by the field's own measures. Pure; knows no database."""
