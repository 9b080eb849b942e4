/* croupier customer add | list | show | set | enable | disable. */
#include <string.h>

#include "base/memory.h"
#include "commands/commands.h"
#include "commands/platform.h"
#include "operator/customers.h"
#include "records/records.h"

/* ---- printing -------------------------------------------------------------------------------- */

static void print_customer_json(const struct customer_record *record, size_t live_keys)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    command_print_value(doc, customer_json(doc, record, live_keys));
}

static void print_customer_plain(const struct customer_record *record, size_t live_keys)
{
    struct buffer sports = {0};
    struct buffer rate = {0};
    struct buffer cidrs = {0};
    char created[CLOCK_TEXT_SIZE];
    sport_set_append(&sports, record->sports);
    rate_append(&rate, &record->rate);
    cidr_list_append(&cidrs, record->cidrs, record->cidr_count);
    clock_format_rfc3339(record->created_ms, created);
    (void)printf("id       %s\n", record->id);
    (void)printf("name     %s\n", record->name);
    (void)printf("enabled  %s\n", record->enabled ? "yes" : "no");
    if (!record->usable)
        (void)puts("usable   no: the stored record cannot be read, so it admits nobody");
    (void)printf("cidrs    %s\n",
                 cidrs.size > 0 ? buffer_string(&cidrs) : "none: denied everywhere");
    (void)printf("sports   %s\n", buffer_string(&sports));
    (void)printf("rate     %s\n", buffer_string(&rate));
    (void)printf("casino   %s\n", record->casino ? "yes" : "no");
    (void)printf("keys     %zu\n", live_keys);
    (void)printf("created  %s\n", created);
    buffer_free(&sports);
    buffer_free(&rate);
    buffer_free(&cidrs);
}

static void note_lack_of_cidrs(const struct command_line *line,
                               const struct customer_record *record)
{
    char program[PROGRAM_TEXT_SIZE];
    command_program(line, program);
    if (record->cidr_count == 0)
        command_note(line,
                     "it has no CIDR block, so it is denied everywhere until: %s customer set %s "
                     "--cidr CIDR",
                     program, record->id);
}

/* ---- the commands ---------------------------------------------------------------------------- */

/* What the options say, for `add` and `set` alike. `cidr_values` is the caller's to free. */
static void read_policy_options(const struct command_line *line, struct customer_settings *settings,
                                const char ***cidr_values)
{
    size_t count = command_option_count(line, "cidr");
    const char **values = memory_alloc_zeroed(count, sizeof values[0]);
    for (size_t i = 0; i < count; i++)
        values[i] = command_option_at(line, "cidr", i);
    settings->cidr_values = values;
    settings->cidr_count = count;
    settings->replace_cidrs = count > 0;
    settings->sports = command_option(line, "sports");
    settings->rate = command_option(line, "rate");
    *cidr_values = values;
}

static int run_add(const struct command_line *line)
{
    struct customer_settings settings = {.name = command_argument(line, 0)};
    struct customer_record record = {0};
    struct platform_store *store = NULL;
    struct error error = {0};
    const char **cidr_values = NULL;
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    read_policy_options(line, &settings, &cidr_values);
    settings.casino = command_option(line, "casino") != NULL ? SETTING_ON : SETTING_LEAVE;
    enum status status = customers_add(store, &settings, clock_wall_ms(), &record, &error);
    memory_free(cidr_values);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return command_fail(line, status, &error);
    if (command_json(line)) {
        print_customer_json(&record, 0);
    } else {
        char program[PROGRAM_TEXT_SIZE];
        command_program(line, program);
        (void)puts(record.id);
        note_lack_of_cidrs(line, &record);
        command_note(line, "next, a key: %s key issue %s", program, record.id);
    }
    customer_record_free(&record);
    return EXIT_DONE;
}

struct customer_listing {
    struct listing listing;
    struct key_counts *counts;
};

static void table_cidrs(struct table *table, const struct customer_record *record)
{
    char first[CIDR_TEXT_SIZE];
    if (record->cidr_count == 0) {
        table_cell(table, "none");
        return;
    }
    cidr_format(&record->cidrs[0], first);
    if (record->cidr_count == 1)
        table_cell(table, "%s", first);
    else
        table_cell(table, "%s and %zu more", first, record->cidr_count - 1);
}

static bool list_customer(void *context, const struct customer_record *record)
{
    struct customer_listing *customers = context;
    struct listing *listing = &customers->listing;
    size_t live_keys = key_counts_of(customers->counts, record->id);
    if (listing->doc != NULL) {
        listing_add(listing, customer_json(listing->doc, record, live_keys));
        return true;
    }
    table_cell(listing->table, "%s", record->id);
    table_cell(listing->table, "%s", record->name);
    table_cell(listing->table, "%s", !record->usable ? "unusable" : record->enabled ? "yes" : "no");
    table_cidrs(listing->table, record);
    table_sports(listing->table, record->sports);
    table_rate(listing->table, &record->rate);
    table_cell(listing->table, "%s", record->casino ? "yes" : "no");
    table_cell(listing->table, "%zu", live_keys);
    table_time(listing->table, record->created_ms);
    return true;
}

static int run_list(const struct command_line *line)
{
    static const char *const headers[] = {"ID",   "NAME",   "ENABLED", "CIDRS",         "SPORTS",
                                          "RATE", "CASINO", "KEYS",    "CREATED (UTC)", NULL};
    struct customer_listing customers = {0};
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = key_counts_create(&customers.counts, store, NULL, clock_wall_ms(), &error);
    listing_begin(&customers.listing, line, headers);
    if (status == STATUS_OK)
        status = platform_customer_list(store, list_customer, &customers, &error);
    platform_store_close(&store);
    key_counts_destroy(&customers.counts);
    return listing_end(&customers.listing, line, status, &error);
}

static int run_show(const struct command_line *line)
{
    struct customer_record record = {0};
    struct key_counts *counts = NULL;
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = customers_get(store, command_argument(line, 0), &record, &error);
    if (status == STATUS_OK)
        status = key_counts_create(&counts, store, record.id, clock_wall_ms(), &error);
    platform_store_close(&store);
    if (status != STATUS_OK) {
        customer_record_free(&record);
        return command_fail(line, status, &error);
    }
    size_t live_keys = key_counts_of(counts, record.id);
    if (command_json(line))
        print_customer_json(&record, live_keys);
    else
        print_customer_plain(&record, live_keys);
    key_counts_destroy(&counts);
    customer_record_free(&record);
    return EXIT_DONE;
}

/* Changes the customer that the first argument names, and says what it is now. */
static int change(const struct command_line *line, const struct customer_settings *settings)
{
    struct customer_record record = {0};
    struct key_counts *counts = NULL;
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status =
        customers_change(store, command_argument(line, 0), settings, &record, &error);
    if (status == STATUS_OK)
        status = key_counts_create(&counts, store, record.id, clock_wall_ms(), &error);
    platform_store_close(&store);
    if (status != STATUS_OK) {
        customer_record_free(&record);
        return command_fail(line, status, &error);
    }
    size_t live_keys = key_counts_of(counts, record.id);
    if (command_json(line)) {
        print_customer_json(&record, live_keys);
    } else if (settings->enabled != SETTING_LEAVE) {
        (void)printf("%s is %s.\n", record.id, record.enabled ? "enabled" : "disabled");
    } else {
        print_customer_plain(&record, live_keys);
        note_lack_of_cidrs(line, &record);
    }
    key_counts_destroy(&counts);
    customer_record_free(&record);
    return EXIT_DONE;
}

static int run_set(const struct command_line *line)
{
    struct customer_settings settings = {.name = command_option(line, "name")};
    const char **cidr_values = NULL;
    bool no_cidrs = command_option(line, "no-cidrs") != NULL;
    if (!command_switch(line, "casino", "no-casino", &settings.casino))
        return EXIT_USAGE;
    if (no_cidrs && command_option(line, "cidr") != NULL)
        return command_usage(line, "--cidr and --no-cidrs contradict each other");
    read_policy_options(line, &settings, &cidr_values);
    settings.replace_cidrs |= no_cidrs;
    int code;
    if (settings.name == NULL && settings.sports == NULL && settings.rate == NULL &&
        !settings.replace_cidrs && settings.casino == SETTING_LEAVE)
        code = command_usage(line, "nothing to set");
    else
        code = change(line, &settings);
    memory_free(cidr_values);
    return code;
}

static int run_enable(const struct command_line *line)
{
    const struct customer_settings settings = {.enabled = SETTING_ON};
    return change(line, &settings);
}

static int run_disable(const struct command_line *line)
{
    const struct customer_settings settings = {.enabled = SETTING_OFF};
    return change(line, &settings);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct command_option add_options[] = {
    {"cidr", "CIDR", "an address block that it may call from", true},
    {"sports", "LIST", "all (the default), none, or names: cricket,tennis", false},
    {"rate", "N/SECONDS", "at most N sports requests in SECONDS; off (the default)", false},
    {"casino", NULL, "it may use the casino, every game of it", false},
    {0},
};

static const struct command_option set_options[] = {
    {"name", "NAME", "what to call it", false},
    {"cidr", "CIDR", "the address blocks that it may call from, instead of those it has", true},
    {"no-cidrs", NULL, "no address block: denied everywhere", false},
    {"sports", "LIST", "all, none, or names: cricket,tennis", false},
    {"rate", "N/SECONDS", "at most N sports requests in SECONDS; or off", false},
    {"casino", NULL, "it may use the casino", false},
    {"no-casino", NULL, "it may not use the casino", false},
    {0},
};

const struct command customer_commands[] = {
    {.name = "add",
     .arguments = "NAME",
     .least = 1,
     .most = 1,
     .summary = "add a customer; prints its id",
     .details =
         "A customer is who calls the API: with its keys, from its address blocks. NAME is for "
         "you:\n"
         "1 to 128 bytes. The id is printed alone, for scripts; --json prints the whole customer.\n"
         "\n"
         "Without a block the customer is denied everywhere; 0.0.0.0/0 and ::/0 are everywhere. A\n"
         "bare address is a block of one. The sports are cricket, football, tennis, horse-racing\n"
         "and greyhound-racing. The rate counts requests on sports routes, of all its keys\n"
         "together, in fixed windows: N is 1 to 1000000000, SECONDS 1 to 86400.\n"
         "\n"
         "A running server knows of every change within a second.",
     .examples =
         "croupier customer add \"Acme Sportsbook\" --cidr 203.0.113.0/24\n"
         "croupier customer add Acme --cidr 203.0.113.7 --cidr 2001:db8::/48 --rate 600/60\n"
         "croupier customer add Trial --cidr 0.0.0.0/0 --cidr ::/0 --sports cricket,tennis\n"
         "ID=$(croupier customer add Acme --cidr 203.0.113.0/24 --casino)",
     .options = add_options,
     .run = run_add},
    {.name = "list",
     .arguments = "",
     .summary = "all customers, as created",
     .details =
         "KEYS counts those that are neither revoked nor expired. --json prints an array of\n"
         "the objects that 'customer show --json' prints.",
     .examples = "croupier customer list\n"
                 "croupier customer list --json | jq -r '.[] | select(.enabled | not) | .id'",
     .run = run_list},
    {.name = "show",
     .arguments = "ID",
     .least = 1,
     .most = 1,
     .summary = "one customer",
     .details = "ID is what 'customer add' printed: cus_ and 16 characters.",
     .examples = "croupier customer show cus_7Qm2Zt0aXw9Lk3Rb\n"
                 "croupier customer show cus_7Qm2Zt0aXw9Lk3Rb --json",
     .run = run_show},
    {.name = "set",
     .arguments = "ID",
     .least = 1,
     .most = 1,
     .summary = "change a customer",
     .details =
         "Changes what is given and leaves the rest. --cidr replaces the whole list, so give\n"
         "all blocks. A running server follows within a second.",
     .examples =
         "croupier customer set cus_7Qm2Zt0aXw9Lk3Rb --cidr 203.0.113.0/24 --cidr 198.51.100.7\n"
         "croupier customer set cus_7Qm2Zt0aXw9Lk3Rb --rate off --sports all\n"
         "croupier customer set cus_7Qm2Zt0aXw9Lk3Rb --name \"Acme Ltd\" --no-casino",
     .options = set_options,
     .run = run_set},
    {.name = "enable",
     .arguments = "ID",
     .least = 1,
     .most = 1,
     .summary = "admit a disabled customer again",
     .details = "Its keys, blocks and limits are as they were.",
     .examples = "croupier customer enable cus_7Qm2Zt0aXw9Lk3Rb",
     .run = run_enable},
    {.name = "disable",
     .arguments = "ID",
     .least = 1,
     .most = 1,
     .summary = "stop admitting a customer",
     .details =
         "All its keys are refused within a second. Nothing is lost: 'enable' brings it back.",
     .examples = "croupier customer disable cus_7Qm2Zt0aXw9Lk3Rb",
     .run = run_disable},
    {0},
};
