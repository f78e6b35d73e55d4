from pathlib import Path

from _weather import make_agent

from agents import Runner, SQLiteSession

Path("session.db").unlink(missing_ok=True)
session = SQLiteSession("one", "session.db")
for question in ("How is the weather in Paris?", "What did I ask?"):
    print(Runner.run_sync(make_agent(), question, session=session).final_output)
