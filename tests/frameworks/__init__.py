"""Small agents on many frameworks, recorded with no edit and replayed: ``make test-frameworks``.

Each folder is one framework: what is installed for it (``requirements.txt``, or
``package.json`` for npm), its agents, and where its prompts need answers of their own, ``model.py``.
"""
