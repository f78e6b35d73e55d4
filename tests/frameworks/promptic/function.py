from promptic import llm


@llm(model="openai/gpt-4o-mini")
def capital(country):
    """What is the capital of {country}?"""


print(capital("France"))
print(capital("Peru"))
