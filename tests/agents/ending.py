"""Makes one call and then ends the way its first argument says, in Python."""

import sys

import reenact


@reenact.tool
def look_up(item: str) -> dict[str, object]:
    return {"item": item, "price": 12.5}


print(look_up("lamp")["price"], flush=True)
exec(sys.argv[1])
