"""Creates, deletes, ends, crashes, leader changes, quota edits, late and repeated events: in every
order of them no quota is overrun, nobody waits without a reason, and nothing has to be remembered.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.queue.model import HOLD_AFTER, Leader
from core.queue.small_server import COVERED, MEMBERSHIP, REFUSING, Pod, Server, Tenant
from core.queue.webhook_model import Webhook
from gpumem_operator.ledger.book import Reason
from gpumem_operator.ledger.groups import Group
from gpumem_operator.ledger.queue import Turn, Waiting

TENANTS = ("a", "b", "refusing")
amounts = st.integers(0, 4)
limits = st.integers(0, 10)


class QuotaMachine(RuleBasedStateMachine):
    """A cluster in which everything goes wrong that may."""

    @initialize(limits=st.tuples(limits, limits, limits))
    def begin(self, limits: tuple[int, int, int]) -> None:
        self.server = Server(
            {name: Tenant(name, limit) for name, limit in zip(TENANTS, limits, strict=True)}
        )
        self.leaders = [Leader(self.server)]
        self.webhooks: list[Webhook] = []
        self.allowed = {name: one.limit for name, one in self.server.tenants.items()}
        self.excused: dict[str, set[str]] = {name: set() for name in TENANTS}
        """Pods that were there, or on their way, when their namespace came to a tenant."""
        self.count = 0

    @rule(
        amount=amounts,
        namespace=st.sampled_from(("alone", "first", "both", "second")),
        size=st.sampled_from((1, 1, 2, 3)),
        priority=st.integers(0, 1),
    )
    def create(self, amount: int, namespace: str, size: int, priority: int) -> None:
        group = Group(f"controller-of-{size}-in-{namespace}", size) if size > 1 else None
        pod = self._new(amount, namespace, gated=True)
        self.server.put(Pod(**{**vars(pod), "group": group, "priority": priority}))

    @rule(asked=st.lists(amounts, min_size=1, max_size=3), namespace=st.sampled_from(REFUSING))
    def ask_webhook(self, asked: list[int], namespace: str) -> None:
        pods = [self._new(amount, namespace, gated=False) for amount in asked]
        self.webhooks.append(Webhook(self.server, pods))

    @rule(amount=amounts, name=st.sampled_from(("first", "second")))
    def ask_for_a_named_node(self, amount: int, name: str) -> None:
        """In a tenant that queues: a pod that can have no gate."""
        self.webhooks.append(Webhook(self.server, [self._new(amount, name, gated=False)]))

    @precondition(lambda self: self.leaders)
    @rule(data=st.data(), name=st.sampled_from(TENANTS))
    def tell(self, data: st.DataObject, name: str) -> None:
        data.draw(st.sampled_from(self.leaders)).tell(name)

    @precondition(lambda self: self.webhooks)
    @rule(data=st.data())
    def step_webhook(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.webhooks)).step()

    @precondition(lambda self: self.webhooks)
    @rule(data=st.data())
    def kill_webhook(self, data: st.DataObject) -> None:
        """With what it has reserved: nobody will create that pod."""
        self.webhooks.remove(data.draw(st.sampled_from(self.webhooks)))

    @precondition(lambda self: self.server.pods)
    @rule(data=st.data(), finish=st.booleans())
    def end_pod(self, data: st.DataObject, *, finish: bool) -> None:
        pod = self.server.pods[data.draw(st.sampled_from(sorted(self.server.pods)))]
        self.server.put(Pod(**{**vars(pod), "finished" if finish else "deleted": True}))

    @rule(name=st.sampled_from(TENANTS), limit=limits)
    def edit_quota(self, name: str, limit: int) -> None:
        self.server.set_limit(name, limit)
        self.allowed[name] = max(limit, self._taken(name))

    @rule(covered=st.booleans())
    def select_namespaces(self, *, covered: bool) -> None:
        """Tenant `b` comes to have another namespace, or gives it up."""
        self.server.members = COVERED if covered else MEMBERSHIP
        self.server.write(replace(self.server.tenants["b"], counted=False))
        coming = [pod for one in self.webhooks for pod in one.pods]
        self.excused["b"] |= {
            pod.uid for pod in [*self.server.pods.values(), *coming] if pod.namespace == "first"
        }

    @rule(seconds=st.integers(1, 4))
    def wait(self, seconds: int) -> None:
        self.server.now += seconds

    @precondition(lambda self: self.leaders and self.server.history)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """Any version of any pod, to anybody, as often as it comes."""
        leader = data.draw(st.sampled_from(self.leaders))
        last = len(self.server.history) - 1
        leader.see(self.server.history[data.draw(st.integers(max(0, last - 8), last))])

    @precondition(lambda self: self.leaders)
    @rule(data=st.data(), steps=st.integers(1, 4))
    def step_leader(self, data: st.DataObject, steps: int) -> None:
        leader = data.draw(st.sampled_from(self.leaders))
        for _ in range(steps):
            leader.step()
            self._check_quotas()

    @precondition(lambda self: any(leader.opening for leader in self.leaders))
    @rule(data=st.data())
    def open_gate(self, data: st.DataObject) -> None:
        leader = data.draw(st.sampled_from([one for one in self.leaders if one.opening]))
        leader.open(data.draw(st.integers(0, len(leader.opening) - 1)))

    @rule(namespaces=st.sets(st.sampled_from(sorted(MEMBERSHIP)), max_size=2))
    def patches_get_no_answer(self, namespaces: set[str]) -> None:
        self.server.silent = frozenset(namespaces)

    @rule()
    def another_leader(self) -> None:
        """The earlier ones are not told."""
        self.leaders.append(Leader(self.server))

    @precondition(lambda self: self.leaders)
    @rule(data=st.data())
    def kill_leader(self, data: st.DataObject) -> None:
        self.leaders.remove(data.draw(st.sampled_from(self.leaders)))

    @rule()
    def come_to_rest(self) -> None:
        """One leader sees everything, and goes on until there is nothing to do."""
        self.server.silent = frozenset()
        leader = Leader(self.server)
        self.leaders.append(leader)
        _run_until_ready(leader)
        self._look_for_lost_pods(leader)
        for _ in range(200):
            before = (self.server.version, leader.turn())
            for _ in range(20):
                leader.step()
                while leader.opening:
                    leader.open(0)
                self._check_quotas()
            if (self.server.version, leader.turn()) == before:
                break
        else:
            raise AssertionError("the leader does not come to rest")
        self._check_rest(leader)

    @invariant()
    def no_quota_is_overrun(self) -> None:
        if hasattr(self, "server"):
            self._check_quotas()

    def _new(self, amount: int, namespace: str, *, gated: bool) -> Pod:
        self.count += 1
        name = f"pod-{self.count}"
        return Pod(name, namespace, amount, version=0, created=self.server.now, gated=gated)

    def _check_quotas(self) -> None:
        for name, tenant in self.server.tenants.items():
            taken = self._taken(name)
            # Lowering a quota evicts nobody; from then on what is too much may only become less.
            self.allowed[name] = max(tenant.limit, min(self.allowed[name], taken))
            assert taken <= self.allowed[name], f"{name}: {taken} of {tenant.limit}"

    def _taken(self, name: str) -> int:
        return self.server.taken(name, without=self.excused[name])

    def _look_for_lost_pods(self, leader: Leader) -> None:
        """As a minute after it: a webhook that has not created its pod by then never will."""
        coming = {pod.uid for one in self.webhooks for pod in one.pods} - {
            uid for one in self.webhooks for uid in one.created
        }
        for tenant in leader.tenants.values():
            for one in tenant.reservations:
                if one.pod_uid not in coming:
                    leader.look_for(one.pod_uid)

    def _check_rest(self, leader: Leader) -> None:
        turn = leader.turn()
        assert turn.through == ()
        for name, tenant in self.server.tenants.items():
            charged = sum(
                pod.amount
                for pod in self.server.pods.values()
                if pod.charged and name in self.server.members[pod.namespace]
            )
            assert tenant.charged == charged, "the status does not say what is charged"
            assert turn.reservations[name] == tenant.reservations
        for number, one in enumerate(turn.waiting):
            self._check_reason(one, turn.waiting[:number])
        _check_a_rebuilt_ledger_is_the_same(self.server, turn)

    def _check_reason(self, one: Waiting, before: tuple[Waiting, ...]) -> None:
        """Told from what is stored, and not from what the leader made of it."""
        needs = one.entry.needs or {}
        left = {name: self.server.tenants[name].limit - self.server.taken(name) for name in needs}
        lacking = [name for name, amount in needs.items() if amount > max(left[name], 0)]
        if one.obstacle.reason is Reason.INCOMPLETE:
            assert one.entry.missing > 0
        elif one.obstacle.reason is Reason.HELD:
            assert any(
                holder.holds
                and self.server.now - holder.entry.complete_since >= HOLD_AFTER
                and holder.entry.order < one.entry.order
                for holder in before
            ), "nobody may hold its room"
        else:
            assert lacking, f"{one} would fit"
        assert not (one.holds and one.entry.missing), "an incomplete group holds room"


def _run_until_ready(leader: Leader) -> None:
    while not leader.ready:
        leader.step()


def _check_a_rebuilt_ledger_is_the_same(server: Server, turn: Turn) -> None:
    rebuilt = Leader(server)
    _run_until_ready(rebuilt)
    assert rebuilt.turn() == turn


TestNoQuotaIsOverrun = QuotaMachine.TestCase
TestNoQuotaIsOverrun.settings = settings(
    max_examples=150,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
