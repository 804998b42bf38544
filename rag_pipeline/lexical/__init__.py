"""Words of a text, postings, and BM25 over them. Pure: knows no database."""
