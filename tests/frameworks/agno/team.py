from _weather import MODELS, make_agent
from agno.team import Team

team = Team(
    members=[make_agent(name="forecaster", role="Tells the weather")], model=MODELS["chat"](), name="desk"
)
print(team.run("How is the weather in Paris?").content)
