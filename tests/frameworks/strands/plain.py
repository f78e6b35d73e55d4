from _weather import MODELS, make_agent

for model in MODELS:
    print(make_agent(model)("How is the weather in Paris and Rome?"))
