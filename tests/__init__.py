"""Folders are rooms, files are behaviours."""
