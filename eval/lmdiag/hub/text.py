"""Kept until every importer uses `lmdiag.text`."""

from lmdiag.text import all_visible, file_name, visible

__all__ = ["all_visible", "file_name", "visible"]
