import polars as pl
from _ask import TOPICS, ask

frame = pl.DataFrame({"topic": TOPICS})
told = frame.sample(3, shuffle=True).with_columns(
    said=pl.col("topic").map_elements(
        lambda topic: ask(f"Say something about {topic}"), return_dtype=pl.String
    )
)
print(ask("Sum up " + "; ".join(told.sort("topic")["said"])))
