from _weather import MODELS, make_agent
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


print(make_agent(MODELS[2]).run_sync("How is the weather in Paris and Rome?").output)
print(make_agent(MODELS[2], output_type=Person).run_sync("Ada is 36").output)
