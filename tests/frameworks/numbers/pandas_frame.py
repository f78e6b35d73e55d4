import io

import pandas as pd
from _ask import ask

frame = pd.read_csv(io.StringIO("city,degrees\nParis,21\nRome,25\nOslo,9\n"))
frame["read"] = pd.Timestamp.now()
shuffled = frame.sample(frac=1)
told = shuffled.apply(lambda row: ask(f"Say something about {row.city} at {row.degrees}"), axis=1)
print(ask(f"Read on {frame['read'].iloc[0]:%Y-%m-%d}: " + "; ".join(told)))
print(ask(shuffled[["city", "degrees"]].to_string()))
