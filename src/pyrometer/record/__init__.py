"""The record: frozen typed values, and the one versioned file format."""
