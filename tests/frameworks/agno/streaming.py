from _weather import make_agent

for event in make_agent().run("How is the weather in Oslo and Lima?", stream=True):
    print(event.event, repr(event.content))
