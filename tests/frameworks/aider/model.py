"""An edit in the form that the model's prompt asks for."""

from tests.frameworks.model import everything_said, pace

from reenact.testing import Reply

EDIT = """hello.py
```python
<<<<<<< SEARCH
print("hello")
=======
print("goodbye")
>>>>>>> REPLACE
```
"""
WHOLE = 'hello.py\n```\nprint("goodbye")\n```\n'


def answer(request):
    whole = " ".join(message.text for message in request.messages)
    if "commit message" in whole and "diff --git" in whole:
        return pace(request, Reply("feat: say goodbye"))
    if "Make it say goodbye" in everything_said(request):
        return pace(request, Reply(EDIT if "SEARCH/REPLACE" in whole else WHOLE))
    return None
