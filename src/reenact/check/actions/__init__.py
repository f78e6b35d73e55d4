"""Single actions of an agent: schemas, capsules that validate them, policies that allow them, records."""
