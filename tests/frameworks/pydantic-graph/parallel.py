import asyncio

from _ask import ask_async as ask
from pydantic_graph import GraphBuilder, StepContext
from pydantic_graph.join import reduce_list_append

g = GraphBuilder(input_type=list[str], output_type=str)


@g.step
async def topics(ctx: StepContext[None, None, list[str]]) -> list[str]:
    return ctx.inputs


@g.step
async def look(ctx: StepContext[None, None, str]) -> str:
    return await ask(f"Say something about {ctx.inputs}")


collect = g.join(reduce_list_append, initial_factory=list[str])


@g.step
async def sum_up(ctx: StepContext[None, None, list[str]]) -> str:
    print(ctx.inputs)
    return await ask("Sum up: " + "; ".join(ctx.inputs))


g.add(
    g.edge_from(g.start_node).to(topics),
    g.edge_from(topics).map().to(look),
    g.edge_from(look).to(collect),
    g.edge_from(collect).to(sum_up),
    g.edge_from(sum_up).to(g.end_node),
)
print(asyncio.run(g.build().run(inputs=["ants", "bees", "cats", "dogs"])))
