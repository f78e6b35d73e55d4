from _ask import ask
from faker import Faker

fake = Faker()
print(ask(f"{fake.name()} lives at {fake.address()}"))
