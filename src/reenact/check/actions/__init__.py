"""Single actions of an agent: their schema, capsules that judge them, policies that decide, records."""
