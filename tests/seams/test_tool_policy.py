"""``@reenact.tool(policy=…)``: decided before the function runs, recorded, and replayed without asking."""

import pytest

import reenact
from reenact.check.actions.policy import Policy
from reenact.formats.decision import CallRefused

SMALL = {"id": "small", "verdict": "allow", "tools": ["refund"], "arguments": {"amount": {"at_most": 50}}}
LARGE = {"id": "large", "verdict": "review", "tools": ["refund"], "arguments": {"amount": {"above": 50}}}
COINS = {"id": "coins", "verdict": "deny", "tools": ["*"], "arguments": {"currency": {"equals": "BTC"}}}
POLICY = Policy.from_json({"schema_version": 1, "rules": [SMALL, LARGE, COINS]})


class Ledger:
    """Which calls ran, and which somebody was asked about."""

    def __init__(self, answer=False):
        self.ran = []
        self.asked = []
        self.answer = answer

    def approve(self, call, decision):
        self.asked.append((call.name, call.request, decision.rule))
        return self.answer

    def tool(self):
        @reenact.tool(name="refund", policy=POLICY, approve=self.approve)
        def refund(amount, currency="EUR"):
            self.ran.append(amount)
            return f"{amount} {currency}"

        return refund


def test_an_allowed_call_runs():
    """Outside a run as well as inside."""
    assert Ledger().tool()(20) == "20 EUR"


def test_a_denied_call_raises_before_the_function_runs():
    """Nobody is asked, because nobody may say yes."""
    ledger = Ledger(answer=True)
    with pytest.raises(CallRefused, match="refund: currency equals 'BTC': denied by") as caught:
        ledger.tool()(480, "BTC")
    assert (caught.value.decision.verdict, caught.value.decision.rule) == ("deny", "coins")
    assert (ledger.ran, ledger.asked) == ([], [])


def test_a_call_for_review_runs_when_approved():
    """The callback sees the call, its defaults filled in, and the rule."""
    ledger = Ledger(answer=True)
    assert ledger.tool()(480) == "480 EUR"
    assert ledger.asked == [("refund", {"amount": 480, "currency": "EUR"}, "large")]


@pytest.mark.parametrize("answer", [False, None, "yes", 1])
def test_a_call_for_review_raises_unless_approved(answer):
    """Only True is a yes: an async callback by mistake returns something truthy."""
    ledger = Ledger(answer)
    with pytest.raises(CallRefused, match="not approved by the policy's rule 'large'"):
        ledger.tool()(480)
    assert ledger.ran == []


def test_without_a_callback_review_raises():
    """Nobody is there to ask."""

    @reenact.tool(name="refund", policy=POLICY)
    def refund(amount):
        return amount

    with pytest.raises(CallRefused):
        refund(480)


def test_a_tool_without_a_policy_is_as_before():
    """Nothing is decided."""

    @reenact.tool
    def refund(amount):
        return amount

    assert refund("a lot") == "a lot"


def test_a_policy_that_fails_stops_the_call():
    """Its error comes out, and the function has not run."""

    class Broken:
        def decide_call(self, name, arguments):
            raise RuntimeError("no policy today")

    ran = []

    @reenact.tool(policy=Broken())
    def refund():
        ran.append(1)

    with pytest.raises(RuntimeError, match="no policy today"):
        refund()
    assert ran == []


async def test_coroutines_are_decided_about():
    """When called and awaited."""
    ran = []

    @reenact.tool(name="refund", policy=POLICY)
    async def refund(amount):
        ran.append(amount)
        return amount

    assert await refund(5) == 5
    with pytest.raises(CallRefused):
        await refund(500)
    assert ran == [5]


async def test_generators_are_decided_about():
    """Before their first item."""

    @reenact.tool(name="refund", policy=POLICY)
    def items(amount):
        yield amount

    @reenact.tool(name="refund", policy=POLICY)
    async def async_items(amount):
        yield amount

    assert list(items(5)) == [5]
    assert [item async for item in async_items(5)] == [5]
    with pytest.raises(CallRefused):
        next(items(500))
    with pytest.raises(CallRefused):
        await anext(async_items(500))


def agent(refund):
    """Tries three refunds and reports what became of each."""
    report = []
    for amount, currency in ((20, "EUR"), (480, "EUR"), (20, "BTC")):
        try:
            report.append(refund(amount, currency=currency))
        except CallRefused as refused:
            report.append((str(refused), refused.decision))
    return report


@pytest.mark.parametrize("answer", [True, False])
def test_decisions_are_recorded_and_replayed_without_asking(answer, tmp_path):
    """The person's answer is part of the run; the refusal is the call's outcome."""
    recorded = Ledger(answer)
    with reenact.capture(tmp_path / "run") as run:
        run.final_output = "done"
        before = agent(recorded.tool())
    replayed = Ledger(not answer)
    with reenact.replay(tmp_path / "run") as run:
        after = agent(replayed.tool())
        run.final_output = "done"
    assert after == before
    assert len(recorded.asked) == 1
    assert (replayed.asked, replayed.ran) == ([], [])
