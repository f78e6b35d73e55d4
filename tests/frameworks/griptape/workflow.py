import logging

from griptape.drivers.prompt.openai import OpenAiChatPromptDriver
from griptape.structures import Workflow
from griptape.tasks import PromptTask

logging.getLogger("griptape").setLevel(logging.ERROR)
driver = OpenAiChatPromptDriver(model="gpt-4o-mini")
topics = ("ants", "bees", "cats", "dogs")
asked = [PromptTask(f"Say something about {topic}", prompt_driver=driver, id=topic) for topic in topics]
end = PromptTask("Sum up: {{ parent_outputs }}", prompt_driver=driver, id="end")
workflow = Workflow(tasks=[*asked, end])
for task in asked:
    end.add_parent(task)
workflow.run()
print(end.output.value)
