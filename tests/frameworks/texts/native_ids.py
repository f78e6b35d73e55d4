import fastuuid
import uuid_utils
from _ask import ask
from typeid import TypeID

ask(f"Session {fastuuid.uuid4()}: ants")
ask(f"Session {uuid_utils.uuid4()}: bees")
ask(f"Session {uuid_utils.uuid7()}: cats")
ask(f"Session {TypeID(prefix='user')}: dogs")
ask(f"Session {uuid_utils.uuid4().hex}: eels")
print("asked")
