from guidance import assistant, gen, models, system, user

lm = models.OpenAI("gpt-4o-mini")
with system():
    lm += "You are kind."
for topic in ["ants", "bees"]:
    with user():
        lm += f"Say something about {topic}"
    with assistant():
        lm += gen(f"said_{topic}")
print(lm["said_ants"], lm["said_bees"])
