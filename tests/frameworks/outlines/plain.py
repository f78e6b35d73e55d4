import openai
import outlines
from pydantic import BaseModel


class Ant(BaseModel):
    name: str
    legs: int


model = outlines.from_openai(openai.OpenAI(), "gpt-4o-mini")
print(model("Describe an ant", Ant))
print("".join(model.stream("Tell me of ants")))
