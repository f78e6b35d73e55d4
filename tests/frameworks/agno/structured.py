from _weather import MODELS
from agno.agent import Agent
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


print(Agent(model=MODELS["responses"](), output_schema=Person).run("Ada is 36").content)
