"""Static files with their hash in their name, so that browsers may keep them for ever."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class Hashed(CompressedManifestStaticFilesStorage):
    def stored_name(self, name: str) -> str:
        """Before the first `collectstatic` the names are plain, and WhiteNoise serves the files from where they lie."""
        return super().stored_name(name) if self.hashed_files else name
