"""Stage data at rest: Parquet files per stage, repository and day, and the Arrow form of the nouns."""
