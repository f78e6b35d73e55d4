from _agent import ask, get_weather
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from langgraph_supervisor import create_supervisor

model = ChatOpenAI(model="gpt-4o-mini")
weather = create_react_agent(model, tools=[get_weather], name="weather")
graph = create_supervisor([weather], model=model, prompt="You lead.").compile()
for place, piece in graph.stream(ask("How is the weather in Paris?"), subgraphs=True):
    print(place and place[0].partition(":")[0], list(piece))
