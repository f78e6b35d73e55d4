"""Looking at runs of every kind of artifact: listing, comparing, counting, converting them."""
