import datetime as dt

import dateparser
import humanize
from _ask import ask
from dateutil.relativedelta import relativedelta

now = dt.datetime.now().astimezone()
print(ask(f"Due {humanize.naturaldate(now + dt.timedelta(days=3))}")[:8])
print(ask(f"Since {dateparser.parse('three weeks ago'):%B %d}")[:8])
print(ask(f"Until {(now + relativedelta(months=+2, weekday=0)).date()}, week {now.isocalendar().week}")[:8])
print(ask(f"Quarter {(now.month - 1) // 3 + 1} of {now.year}")[:8])
