"""What of a log may be published, under which policy."""
