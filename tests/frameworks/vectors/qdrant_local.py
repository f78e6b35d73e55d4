import uuid

from _ask import TOPICS, ask
from _embed import embed
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams

client = QdrantClient(":memory:")
client.create_collection("said", vectors_config=VectorParams(size=16, distance=Distance.COSINE))
client.upsert(
    "said",
    [
        PointStruct(
            id=str(uuid.uuid4()), vector=embed(t).tolist(), payload={"text": ask(f"Say something about {t}")}
        )
        for t in TOPICS[:4]
    ],
)
found = client.query_points("said", query=embed("ants").tolist(), limit=3).points
print(ask("\n".join(f"[{p.id}] {p.score:.3f} {p.payload['text']}" for p in found))[:15])
