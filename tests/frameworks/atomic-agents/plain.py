import instructor
import openai
from atomic_agents.agents.base_agent import BaseAgent, BaseAgentConfig, BaseAgentInputSchema
from atomic_agents.lib.components.agent_memory import AgentMemory

agent = BaseAgent(
    config=BaseAgentConfig(
        client=instructor.from_openai(openai.OpenAI()), model="gpt-4o-mini", memory=AgentMemory()
    )
)
for city in ("ants", "bees"):
    print(agent.run(BaseAgentInputSchema(chat_message=f"Tell me of {city}")).chat_message)
