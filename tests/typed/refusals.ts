// What the service refuses does not compile. types.ts has the types of one generator: the test makes it for each.
import type {LaunchAnswer, LaunchRequest, ProviderRequest, WalletAnswer, WalletRequest} from "./types";

const player = {player_id: "ply_9tHpZcX2kQvL0aBd"};
const move = {...player, transaction_id: "t-1"};
const money = {...move, amount_minor: 250, currency: "EUR"};
const play = {game_id: "anubis-falls", round_id: "r-1"};

const wallet: WalletRequest[] = [
    {operation: "BALANCE", ...player},
    {operation: "DEBIT", ...money, ...play},
    {operation: "CREDIT", ...money, ...play, reference_transaction_id: "bet-1"},
    {operation: "ROLLBACK", ...move, reference_transaction_id: "bet-1"},
];
// @ts-expect-error a DEBIT without an amount
const noAmount: WalletRequest = {operation: "DEBIT", player_id: "p", transaction_id: "t", currency: "EUR", game_id: "g", round_id: "r"};
// @ts-expect-error a DEBIT without a currency
const noCurrency: WalletRequest = {operation: "DEBIT", player_id: "p", transaction_id: "t", amount_minor: 1, game_id: "g", round_id: "r"};
// @ts-expect-error a BALANCE with an amount
const balanceWithAmount: WalletRequest = {operation: "BALANCE", player_id: "p", amount_minor: 1};
// @ts-expect-error a DEBIT that refers to another
const debitWithReference: WalletRequest = {operation: "DEBIT", player_id: "p", transaction_id: "t", amount_minor: 1, currency: "EUR", reference_transaction_id: "x"};
// @ts-expect-error a ROLLBACK of nothing
const rollbackOfNothing: WalletRequest = {operation: "ROLLBACK", player_id: "p", transaction_id: "t"};
// @ts-expect-error an operation that does not exist
const refund: WalletRequest = {operation: "REFUND", player_id: "p", transaction_id: "t"};
// @ts-expect-error an amount is no text
const text: WalletRequest = {operation: "CREDIT", player_id: "p", transaction_id: "t", amount_minor: "1", currency: "EUR"};

const launches: LaunchRequest[] = [{mode: "demo"}, {mode: "real", player_reference: "alice", currency: "EUR", country: "DE"}];
// @ts-expect-error a launch for money without a player
const noPlayer: LaunchRequest = {mode: "real", currency: "EUR"};
// @ts-expect-error a demo with money
const demoWithMoney: LaunchRequest = {mode: "demo", currency: "EUR"};

const provider: ProviderRequest[] = [
    {operation: "BALANCE", ...player},
    {operation: "DEBIT", ...money, ...play, launch_id: "lau_1", round_ended: true},
    {operation: "CREDIT", ...money, round_id: "r-1", kind: "promo"},
    {operation: "ROLLBACK", ...move, reference_transaction_id: "bet-1"},
];
// @ts-expect-error a provider's DEBIT without its round
const noRound: ProviderRequest = {operation: "DEBIT", player_id: "p", transaction_id: "t", amount_minor: 1, currency: "EUR", launch_id: "lau_1", game_id: "g"};
// @ts-expect-error a DEBIT has no kind
const debitWithKind: ProviderRequest = {operation: "DEBIT", player_id: "p", transaction_id: "t", amount_minor: 1, currency: "EUR", launch_id: "lau_1", game_id: "g", round_id: "r", kind: "win"};

function describe(answer: WalletAnswer): string {
    if (answer.operation === "BALANCE")
        // @ts-expect-error a balance was not replayed
        return `${answer.balance_minor} after ${answer.sequence}, ${answer.replayed}`;
    return `${answer.transaction_id} is ${answer.status}, ${answer.replayed ? "again" : "now"}`;
}

function playerOf(launch: LaunchAnswer): string {
    // @ts-expect-error a demo has no player
    const any: string = launch.player_id;
    return launch.mode === "real" ? launch.player_id : any;
}

export {wallet, noAmount, noCurrency, balanceWithAmount, debitWithReference, rollbackOfNothing, refund, text, launches, noPlayer, demoWithMoney, provider,
        noRound, debitWithKind, describe, playerOf};
