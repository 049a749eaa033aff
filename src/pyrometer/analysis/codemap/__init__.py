"""What a code map says: pure, a map in and values out."""
