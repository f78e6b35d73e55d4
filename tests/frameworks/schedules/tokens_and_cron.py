import datetime as dt

import jwt
import pendulum
from _ask import ask
from croniter import croniter

now = dt.datetime.now(dt.UTC)
token = jwt.encode({"sub": "agent", "exp": now + dt.timedelta(hours=1)}, "s" * 32)
print(ask(f"Token until {jwt.decode(token, 's' * 32, algorithms=['HS256'])['exp']}"))
print(ask(f"Next {croniter('*/5 * * * *', now).get_next(dt.datetime)}"))
print(ask(f"Next {croniter('0 9 * * 1').get_next(dt.datetime)}"))
print(ask(f"{pendulum.now('Europe/Paris').add(months=1).diff_for_humans()}, {pendulum.tomorrow()}"))
print(ask(f"{pendulum.now().subtract(days=3).format('dddd Do [of] MMMM YYYY')}"))
