"""The normalized trace and its projections."""
