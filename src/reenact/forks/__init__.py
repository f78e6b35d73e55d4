"""What if: a recorded run again, with one thing changed on the way."""
