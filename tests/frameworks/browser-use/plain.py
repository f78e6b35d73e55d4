import asyncio

from browser_use import Agent, Browser, ChatOpenAI


async def main():
    browser = Browser(
        headless=True,
        executable_path="/usr/bin/chromium",
        chromium_sandbox=False,
        enable_default_extensions=False,
    )
    agent = Agent(
        task="Open the page and say done",
        llm=ChatOpenAI(model="gpt-4o-mini"),
        browser=browser,
        use_judge=False,
    )
    history = await agent.run(max_steps=3)
    print(history.final_result())


asyncio.run(main())
