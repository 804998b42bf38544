"""Source items to documents: text extraction and cleaning per kind. No splitting, no storage."""
