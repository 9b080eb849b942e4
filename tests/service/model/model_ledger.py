"""What the interface promises of the wallet, on plain Python objects: the answer to each request, the entries that it leaves,
and all that is read from these entries. It is written from docs/wallet.md and docs/providers.md, not from the program."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

LIMIT = 2**53 - 1
KINDS = {"promo": "promos", "jackpot": "jackpots", "adjustment": "adjustments"}


@dataclass
class Player:
    id: str
    customer: str
    reference: str
    currency: str
    balance: int = 0
    entries: list = field(default_factory=list)


@dataclass
class Kept:
    """A request that belongs to its id for ever; `entry` is None when it was declined."""
    request: dict
    owner: str
    provider: str | None
    player: Player
    answer: tuple
    entry: dict | None
    game: str | None  # that it belongs to: its own, or that of the transaction to which it refers
    round: str | None
    of: str | None  # the provider in whose lines reports have it: its own, or that of the game when it was written
    target: "Kept | None" = None  # that a ROLLBACK undoes, or a CREDIT settles
    undone: bool = False


class Casino:
    """What the operator has set: games with their providers, and what is enabled."""

    def __init__(self, providers, games):
        self.providers = dict.fromkeys(providers, True)
        self.games = {game: [provider, True] for game, provider in games.items()}
        self.blocked = set()  # ids of players, and (customer, reference)

    def provider_of(self, game):
        return self.games[game][0] if game in self.games else None

    def sees(self, game):
        return game in self.games and self.games[game][1] and self.providers[self.games[game][0]]

    def is_blocked(self, player):
        return player.id in self.blocked or (player.customer, player.reference) in self.blocked


class Ledger:
    def __init__(self, casino):
        self.casino = casino
        self.players = {}   # id: Player
        self.subjects = {}  # (provider, the provider's id of the player): Player
        self.launches = {}  # id: (provider, Player)
        self.kept = {}      # (owner, transaction id): Kept
        self.voided = {}    # (owner, transaction id): the Player whose ROLLBACK it was
        self.entries = []   # in the order of commits

    # ---- answers --------------------------------------------------------------------------------------

    def answer(self, owner, provider, request):
        """(status, error or what matters of the document, whether it is a replay)."""
        if provider is not None and not self.casino.providers[provider]:
            return 403, "not_admitted", False
        player = self.subjects.get((provider, request["player_id"])) if provider else self.players.get(request["player_id"])
        mine = player is not None and (provider is not None or player.customer == owner)
        if request["operation"] == "BALANCE":
            return (200, (player.balance, len(player.entries)), False) if mine else (404, "player_not_found", False)
        before = self.kept.get((owner, request["transaction_id"]))
        if before is not None:
            same = meaning(before.request) == meaning(request)
            return (*before.answer, True) if same else (409, "transaction_conflict", False)
        if not mine:
            return 404, "player_not_found", False
        if request.get("currency", player.currency) != player.currency:
            return 422, "currency_mismatch", False
        outcome, movement, target = self.decide(owner, provider, player, request)
        if isinstance(outcome, tuple):
            return (*outcome, False)
        return (*self.keep(owner, provider, player, request, outcome, movement, target).answer, False)

    def decide(self, owner, provider, player, request):
        """The outcome that is kept, the movement, and what it refers to; or (status, error), which is not kept."""
        operation, identity = request["operation"], (owner, request["transaction_id"])
        if identity in self.voided:
            return "transaction_rolled_back", 0, None
        named = (owner, request["reference_transaction_id"]) if "reference_transaction_id" in request else None
        target = self.kept.get(named)
        whose = target.player if target else self.voided.get(named)
        if whose not in (None, player):
            return (409, "transaction_conflict"), 0, None
        applied = target is not None and target.answer[0] == 200
        undone = named in self.voided or (target is not None and target.undone)
        if operation == "DEBIT":
            return self.decide_debit(provider, player, request)
        if operation == "CREDIT":
            if undone:
                return "transaction_rolled_back", 0, target
            if named and not (applied and target.request["operation"] == "DEBIT"):
                return "reference_not_found", 0, target
            return self.move(player, request["amount_minor"], target)
        if undone:
            return "already_rolled_back", 0, target
        if target is not None and target.request["operation"] == "ROLLBACK":
            return "not_rollbackable", 0, target
        if not applied:
            return "voided", 0, target
        if target.request["operation"] == "DEBIT" and self.is_settled(target):
            return "already_settled", 0, target
        return self.move(player, -target.entry["movement_minor"], target)

    def decide_debit(self, provider, player, request):
        if self.casino.is_blocked(player) and (provider or "game_id" in request or "round_id" in request):
            return (403, "player_blocked"), 0, None
        if provider and self.launches.get(request["launch_id"]) != (provider, player):
            return (422, "session_expired"), 0, None
        game = request.get("game_id")
        if game and not (self.casino.sees(game) and provider in (None, self.casino.provider_of(game))):
            return (404, "game_not_found"), 0, None
        return self.move(player, -request["amount_minor"], None)

    @staticmethod
    def move(player, movement, target):
        after = player.balance + movement
        wrong = "insufficient_funds" if after < 0 else "balance_limit_exceeded" if after > LIMIT else None
        return wrong or "applied", 0 if wrong else movement, target

    def is_settled(self, debit):
        return any(kept.target is debit and kept.entry and kept.request["operation"] == "CREDIT" and not kept.undone
                   for kept in self.kept.values())

    STATUS = {"reference_not_found": 404, "insufficient_funds": 422, "balance_limit_exceeded": 422}

    def keep(self, owner, provider, player, request, outcome, movement, target):
        entry, is_entry = None, outcome in ("applied", "voided")
        of_entry = target if target and target.entry else None  # a declined request says nothing of others
        game = request.get("game_id") or (of_entry.game if of_entry else None)
        round_ = request.get("round_id") or (of_entry.round if of_entry else None)
        of = provider or self.casino.provider_of(game)
        answer = (self.STATUS.get(outcome, 409), outcome)
        if is_entry:
            player.balance += movement
            entry = {
                "customer": player.customer, "player_id": player.id, "transaction_id": request["transaction_id"],
                "operation": request["operation"], "outcome": outcome, "currency": player.currency,
                "amount_minor": abs(movement), "reference_transaction_id": request.get("reference_transaction_id"),
                "game_id": request.get("game_id"), "round_id": request.get("round_id"), "provider": provider,
                "launch_id": request.get("launch_id"), "round_ended": request.get("round_ended", False),
                "kind": request.get("kind", "win") if provider and request["operation"] == "CREDIT" else None,
                "sequence": len(player.entries) + 1, "movement_minor": movement, "balance_minor": player.balance}
            answer = 200, (outcome, abs(movement), player.balance, entry["sequence"])
        kept = Kept(request, owner, provider, player, answer, entry, game, round_, of, target)
        self.kept[owner, request["transaction_id"]] = kept
        if is_entry:
            player.entries.append(kept)
            self.entries.append(kept)
            if request["operation"] == "ROLLBACK":
                if target is not None:
                    target.undone = True
                else:
                    self.voided[owner, request["reference_transaction_id"]] = player
        return kept

    # ---- what is read ---------------------------------------------------------------------------------

    def of_customer(self, customer):
        return [kept for kept in self.entries if kept.player.customer == customer]

    def report(self, customer, by_round=False):
        """Lines of the report by (provider, game, currency), or those of the export's rounds."""
        lines = defaultdict(Counter)
        for kept in self.of_customer(customer):
            round_ = (kept.round,) if by_round else ()
            if not by_round or kept.round:
                add_to(lines[kept.of, kept.game, *round_, kept.player.currency], kept)
        return {key: finished(line) for key, line in lines.items()}

    def totals(self, customer):
        lines = defaultdict(Counter)
        for kept in self.of_customer(customer):
            add_to(lines[kept.player.currency], kept)
        return {key: finished(line) for key, line in lines.items()}

    def usage(self, customer):
        """What the customer moved, by currency."""
        lines = defaultdict(Counter)
        for kept in self.of_customer(customer):
            line, operation, movement = lines[kept.player.currency], kept.request["operation"], kept.entry["movement_minor"]
            word = operation.lower() + "s"
            line[word] += 1
            line[word + "_minor"] += -movement if operation == "DEBIT" else movement
            line["movement_minor"] += movement
            if operation != "ROLLBACK" and is_transfer(kept):
                line["transfers_out_minor" if operation == "DEBIT" else "transfers_in_minor"] += abs(movement)
        names = [word + end for word in ("debits", "credits", "rollbacks") for end in ("", "_minor")]
        names += ["transfers_in_minor", "transfers_out_minor", "movement_minor"]
        return {currency: {name: line[name] for name in names} for currency, line in lines.items()}

    def rounds(self, customer):
        """By (player, provider, round): what the operator sees of it."""
        groups = defaultdict(list)
        for kept in self.of_customer(customer):
            if kept.round:
                groups[kept.player.id, kept.of, kept.round].append(kept)
        return {key: seen for key, group in groups.items() if (seen := self.round(group))}

    def round(self, group):
        bets = [kept for kept in group if kept.request["operation"] == "DEBIT"]
        wins = [kept for kept in group if kept.request["operation"] == "CREDIT"]
        if not bets and not wins:
            return None
        standing = [bet for bet in bets if not bet.undone]
        ends = [kept.entry["sequence"] for kept in group if kept.request.get("round_ended") and not kept.undone]
        open_ = [bet for bet in standing if not self.is_settled(bet) and bet.entry["sequence"] > max(ends, default=0)]
        return {
            "state": "open" if open_ else "ended" if ends else "settled", "bets": len(bets), "wins": len(wins), "ends": len(ends),
            "stake_minor": sum(bet.entry["amount_minor"] for bet in standing),
            "win_minor": sum(win.entry["amount_minor"] for win in wins if not win.undone),
            "bet_after_end": bool(ends) and any(bet.entry["sequence"] > min(ends) for bet in standing),
            "game_id": game_of(bets) or game_of(group)}


def game_of(group):
    return max((kept.game for kept in group if kept.game), default=None)


def meaning(request):
    """What a retry is compared by."""
    absent = {"kind": "win"} if request["operation"] == "CREDIT" else {}
    return {**absent, **{name: value for name, value in request.items() if (name, value) != ("round_ended", False)}}


def is_transfer(kept):
    return not (kept.of or kept.game or kept.round)


def kind_of(kept):
    said = kept.target if kept.request["operation"] == "ROLLBACK" else kept
    return KINDS.get(said.entry["kind"]) if said and said.entry else None


def add_to(line, kept):
    operation, movement = kept.request["operation"], kept.entry["movement_minor"]
    transfer, kind = is_transfer(kept), kind_of(kept)
    line["entries"] += 1
    if operation == "DEBIT":
        line["stakes"] += not transfer
        line["transfers_out_minor" if transfer else "stakes_minor"] += -movement
    elif operation == "CREDIT":
        line[kind or "wins"] += not transfer
        line["transfers_in_minor" if transfer else f"{kind or 'wins'}_minor"] += movement
    else:
        undone = "stakes" if movement > 0 else kind or "wins"
        moved = "transfers_out" if movement > 0 else "transfers_in"
        line[f"rolled_back_{moved if transfer else undone}_minor"] += abs(movement)


def finished(line):
    names = ["entries"]
    for word in ("stakes", "wins", *KINDS.values()):
        names += [word, f"{word}_minor", f"rolled_back_{word}_minor"]
    for word in ("transfers_in", "transfers_out"):
        names += [f"{word}_minor", f"rolled_back_{word}_minor"]
    full = {name: line[name] for name in names}
    full["result_minor"] = line["stakes_minor"] - line["rolled_back_stakes_minor"] - sum(
        line[f"{word}_minor"] - line[f"rolled_back_{word}_minor"] for word in ("wins", *KINDS.values()))
    return full
