/* croupier wallet statement | transaction | verify | accept-loss; export and report are in books.c,
 * tail in tail.c.
 * All but accept-loss read, beside a running server, and stream long answers. */
#include <stdarg.h>

#include "base/clock.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/stores.h"
#include "commands/wallet_output.h"
#include "operator/documents.h"
#include "operator/viewer.h"
#include "records/currency.h"

#define DAYS_MAX 36500

/* ---- statement ------------------------------------------------------------------------------- */

struct statement {
    const struct command_line *line;
    struct json_writer *json; /* NULL: for people */
    uint64_t from, to;        /* sequences */
    int64_t from_ms, to_ms;
    const char *kind;
    bool begun;
    int64_t opening_minor, closing_minor;
    const struct ledger_account *account;
};

/* "{"opening_balance_minor": …, "entries": [", or the lines above the entries. */
static void begin_statement(struct statement *statement)
{
    const struct player_record *player = &statement->account->player;
    struct json_writer *json = statement->json;
    char amount[CURRENCY_AMOUNT_SIZE];
    statement->begun = true;
    if (json != NULL) {
        json_string(json, "player_id", player->id);
        json_string(json, "customer", player->customer_id);
        json_string(json, "player_reference", player->reference);
        json_string(json, "currency", player->currency);
        json_integer(json, "currency_exponent", player->currency_exponent);
        json_integer(json, "opening_balance_minor", statement->opening_minor);
        json_array(json, "entries");
        return;
    }
    currency_format(statement->opening_minor, player->currency_exponent, amount);
    (void)printf(
        "%s (%s of %s), %s\n\n%8s  %-24s  %-8s  %16s  %16s  %s\n%8s  %-24s  %-8s  %16s  %16s\n",
        player->id, player->reference, player->customer_id, player->currency, "SEQUENCE", "TIME",
        "WHAT", "MOVEMENT", "BALANCE", "TRANSACTION", "", "", "opening", "", amount);
}

static void show_entry(struct statement *statement, const struct ledger_transaction *entry)
{
    struct json_writer *json = statement->json;
    char created_at[CLOCK_TEXT_SIZE];
    char movement[CURRENCY_AMOUNT_SIZE];
    char balance[CURRENCY_AMOUNT_SIZE];
    if (json != NULL) {
        json_space(json, "\n");
        (void)wallet_list_entry(json, entry);
        return;
    }
    clock_format_rfc3339(entry->created_ms, created_at);
    currency_format(entry->movement_minor, entry->currency_exponent, movement);
    currency_format(entry->balance_minor, entry->currency_exponent, balance);
    (void)printf("%8" PRIu64 "  %-24s  %-8s  %16s  %16s  %s%s%s%s%s%s%s%s\n", entry->sequence,
                 created_at, ledger_operation_name(entry->operation), movement, balance,
                 entry->transaction_id, entry->reference[0] != '\0' ? " of " : "", entry->reference,
                 entry->provider_id[0] != '\0' ? " by " : "", entry->provider_id,
                 entry->kind != LEDGER_WIN ? ", " : "",
                 entry->kind != LEDGER_WIN ? ledger_kind_name(entry) : "",
                 entry->round_ended ? ", round ended" : "");
}

static bool state_entry(void *context, const struct ledger_transaction *entry)
{
    struct statement *statement = context;
    if (entry->sequence > statement->to)
        return false;
    if (entry->created_ms >= statement->to_ms)
        return true; /* an older one may follow: clocks go back */
    if (entry->sequence < statement->from || entry->created_ms < statement->from_ms) {
        if (!statement->begun)
            statement->opening_minor = statement->closing_minor = entry->balance_minor;
        return true;
    }
    if (!statement->begun)
        begin_statement(statement);
    if (viewer_is_of_kind(statement->kind, entry))
        show_entry(statement, entry);
    statement->closing_minor = entry->balance_minor;
    return command_print_so_far(statement->line);
}

static void end_statement(struct statement *statement)
{
    struct json_writer *json = statement->json;
    char amount[CURRENCY_AMOUNT_SIZE];
    if (!statement->begun)
        begin_statement(statement);
    currency_format(statement->closing_minor, statement->account->player.currency_exponent, amount);
    if (json == NULL) {
        (void)printf("%8s  %-24s  %-8s  %16s  %16s\n", "", "", "closing", "", amount);
        return;
    }
    json_end(json);
    json_integer(json, "closing_balance_minor", statement->closing_minor);
}

/* An end of the statement: a sequence or, if it has dashes, a day, whose time it returns. */
static int64_t read_end(const struct command_line *line, const char *option, int64_t days,
                        uint64_t *sequence, int64_t otherwise)
{
    const char *given = command_option(line, option);
    int64_t day = 0;
    if (given == NULL || strchr(given, '-') == NULL) {
        *sequence = command_number(line, option, 1, INT64_MAX, *sequence);
        return otherwise;
    }
    if (clock_parse_day(text_of(given), &day) != STATUS_OK)
        command_usage(line, "--%s is the sequence of an entry or a date, as 2026-11-21", option);
    return (day + days) * CLOCK_DAY_MS;
}

static const char *read_kind(const struct command_line *line)
{
    const char *given = command_option(line, "kind");
    for (const char *const *kind = viewer_kinds; given != NULL; kind++) {
        if (*kind == NULL)
            command_usage(line, "--kind must be DEBIT, CREDIT, ROLLBACK, win, promo, jackpot or "
                                "adjustment");
        if (strcmp(given, *kind) == 0)
            break;
    }
    return given;
}

static void run_statement(const struct command_line *line)
{
    struct ledger_account account;
    const char *player_id = command_argument(line, 0);
    struct statement statement = {
        .line = line, .from = 1, .to = INT64_MAX, .kind = read_kind(line), .account = &account};
    statement.from_ms = read_end(line, "from", 0, &statement.from, INT64_MIN);
    statement.to_ms = read_end(line, "to", 1, &statement.to, INT64_MAX);
    struct platform_store *store = command_platform(line);
    statement.json = command_object(line, JSON_COMPACT);
    command_require(
        line, viewer_account(store, &viewer_operator, player_id, &account, command_error(line)));
    command_require(line,
                    platform_ledger_entries(store, (struct ledger_whose){.player_id = player_id},
                                            state_entry, &statement, command_error(line)));
    end_statement(&statement);
}

/* ---- transaction ----------------------------------------------------------------------------- */

/* A line with text of a customer or a provider. */
static void PRINTF_LIKE(1, 2) show(const char *format, ...)
{
    char line[512];
    struct buffer shown = {0};
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    buffer_append_shown(&shown, text_of(line));
    (void)puts(buffer_string(&shown));
    buffer_free(&shown);
}

static void show_fact(const struct ledger_fact *fact)
{
    const struct ledger_transaction *transaction = &fact->id.transaction;
    char amount[CURRENCY_AMOUNT_SIZE];
    char created_at[CLOCK_TEXT_SIZE];
    if (fact->id.known) {
        currency_format(transaction->amount_minor, transaction->currency_exponent, amount);
        clock_format_rfc3339(transaction->created_ms, created_at);
        (void)printf("%s %s %s by %s: %s, %s\n", ledger_operation_name(transaction->operation),
                     amount, transaction->currency, transaction->player_id,
                     ledger_outcome_name(transaction->outcome), created_at);
        if (transaction->reference[0] != '\0')
            show("refers to %s", transaction->reference);
        if (transaction->game_id[0] != '\0' || transaction->round_id[0] != '\0')
            show("game %s, round %s", transaction->game_id[0] != '\0' ? transaction->game_id : "-",
                 transaction->round_id[0] != '\0' ? transaction->round_id : "-");
        if (transaction->provider_id[0] != '\0')
            (void)printf("moved by provider %s, launch %s\n", transaction->provider_id,
                         transaction->launch_id[0] != '\0' ? transaction->launch_id : "-");
        if (transaction->kind != LEDGER_WIN)
            (void)printf("kind %s\n", ledger_kind_name(transaction));
        if (transaction->round_ended)
            (void)puts("ends its round");
        if (ledger_is_entry(transaction)) {
            currency_format(transaction->balance_minor, transaction->currency_exponent, amount);
            (void)printf("sequence %" PRIu64 ", balance %s afterwards\n", transaction->sequence,
                         amount);
        }
    }
    if (fact->id.rolled_back)
        (void)puts(fact->id.known ? "rolled back" : "never came, and was rolled back");
    if (fact->id.standing_credits > 0)
        show("settled by %s", fact->id.settled_by);
}

static void run_transaction(const struct command_line *line)
{
    struct ledger_fact fact = {.id = {.known = false}};
    const char *owner = command_argument(line, 0);
    const char *id = command_argument(line, 1);
    if (strlen(owner) < sizeof fact.owner_id && strlen(id) < sizeof fact.transaction_id) {
        ledger_ask(&fact, owner, id);
        struct platform_store *store = command_platform(line);
        command_require(line, store->ledger->id(store, &fact, command_error(line)));
    }
    if (!fact.id.known && !fact.id.rolled_back)
        command_refuse(line, "there is no such transaction");
    struct json_writer *json = command_object(line, JSON_COMPACT);
    if (json != NULL)
        wallet_write_fact(json, &fact);
    else
        show_fact(&fact);
}

/* ---- verify ---------------------------------------------------------------------------------- */

static void write_sound(struct json_writer *json, const struct audit_options *options,
                        const struct audit_result *result)
{
    json_bool(json, "sound", true);
    json_unsigned(json, "entries", result->entries);
    json_unsigned(json, "players", result->players);
    if (options->recent) {
        json_time(json, "since", options->since_ms);
        json_unsigned(json, "entries_since", result->entries);
    }
}

/* Standard error has the reason as well. */
static void print_broken(const struct command_line *line, const struct audit_break *broken,
                         const struct error *error)
{
    struct json_writer *json = command_object(line, JSON_COMPACT);
    if (json == NULL)
        return;
    json_bool(json, "sound", false);
    json_string(json, "reason", error->text);
    json_string_or_null(json, "player_id", broken->player_id);
    json_unsigned_or_null(json, "sequence", broken->sequence);
    json_unsigned_or_null(json, "decline", broken->decline);
    command_print_document(line);
}

static void print_sound(const struct audit_options *options, const struct audit_result *result)
{
    char since[CLOCK_TEXT_SIZE];
    if (!options->recent) {
        (void)fputs("The ledger is sound: ", stdout);
        wallet_print_extent(result);
        (void)printf(". The store itself was checked by %s.%s\n", result->how,
                     result->compared ? ""
                                      : " Its triggers and checks were not compared: this user may "
                                        "not make a schema.");
        return;
    }
    clock_format_rfc3339(options->since_ms, since);
    (void)printf("Sound: %" PRIu64 " entries since %s, with their hashes, sequences, movements and "
                 "balances, and the accounts of their %" PRIu64
                 " players; all clearing accounts.\nNot checked: older entries, declines, rows "
                 "without their counterpart, the index of ids, and the store itself. For these: "
                 "croupier wallet verify\n",
                 result->entries, since, result->players);
}

/* A day, or how many days before this one. */
static bool read_since(const char *given, int64_t *since_ms)
{
    int64_t today = clock_day(clock_wall_ms());
    int64_t day = 0;
    uint64_t days = 0;
    if (clock_parse_day(text_of(given), &day) != STATUS_OK) {
        if (text_to_u64(text_of(given), DAYS_MAX, &days) != STATUS_OK)
            return false;
        day = today - (int64_t)days;
    }
    *since_ms = day * CLOCK_DAY_MS;
    return day <= today;
}

static void verify(const struct command_line *line, struct audit_options *options,
                   struct audit_result *result)
{
    struct platform_store *store = command_platform(line);
    struct error unkept = {.text = ""};
    if (!options->recent)
        options->beside = command_platform(line);
    options->watch = command_watch(line);
    struct error *error = command_error(line);
    enum status status = wallet_verify(store, options, result, &unkept, error);
    command_end_progress(line);
    if (unkept.text[0] != '\0')
        command_complain(line, "the outcome could not be kept: %s", unkept.text);
    if (status == STATUS_MALFORMED)
        print_broken(line, &result->broken, error);
    command_require(line, status);
}

void wallet_verify_whole(const struct command_line *line, struct audit_result *result)
{
    verify(line, &(struct audit_options){.recent = false}, result);
}

static void run_verify(const struct command_line *line)
{
    const char *since = command_option(line, "since");
    if (command_option(line, "file") != NULL || command_option(line, "head") != NULL) {
        run_verify_file(line);
        return;
    }
    struct audit_options options = {.recent = since != NULL};
    struct audit_result result = {0};
    if (since != NULL && !read_since(since, &options.since_ms))
        command_usage(line, "--since is a date that has begun, as 2026-11-21, or how many days "
                            "before today, 0 to 36500");
    verify(line, &options, &result);
    struct json_writer *json = command_object(line, JSON_COMPACT);
    if (json != NULL)
        write_sound(json, &options, &result);
    else
        print_sound(&options, &result);
}

/* ---- accept-loss ----------------------------------------------------------------------------- */

static void run_accept_loss(const struct command_line *line)
{
    struct ledger_end end = {0};
    /* -1: it is not given */
    int64_t last = (int64_t)command_number(line, "last", 0, INT64_MAX, UINT64_MAX);
    struct platform_store *store = command_platform(line);
    enum status status = platform_ledger_accept_loss(store, last, &end, command_error(line));
    if (status == STATUS_MALFORMED)
        command_note(line, "to go on without what was lost: --last %" PRId64, end.last);
    command_require(line, status);
    struct json_writer *json = command_object(line, JSON_COMPACT);
    if (json != NULL) {
        json_integer(json, "last", end.last);
        json_integer(json, "acknowledged", end.acknowledged);
    } else {
        (void)printf("The ledger goes on after transaction %" PRId64
                     ". Now run: croupier wallet verify\n",
                     end.last);
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command wallet_commands[] = {
    {"statement", "PLAYER", &help_wallet_statement, .run = run_statement},
    {"transaction", "CUSTOMER|PROVIDER ID", &help_wallet_transaction, .run = run_transaction},
    {"verify", "", &help_wallet_verify, .run = run_verify},
    {"accept-loss", "", &help_wallet_accept_loss, .run = run_accept_loss},
    {"export", "", &help_wallet_export, .run = run_export},
    {"report", "", &help_wallet_report, .run = run_report},
    {"rounds", "", &help_wallet_rounds, .run = run_rounds},
    {"tail", "", &help_wallet_tail, .run = run_wallet_tail},
    {0},
};
