/* croupier game import | list | show | enable | disable | allow | allowed. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/input.h"
#include "commands/commands.h"
#include "commands/platform.h"
#include "games/document.h"
#include "operator/customers.h"

/* ---- printing -------------------------------------------------------------------------------- */

static void print_list(const char *label, const char *list)
{
    struct text rest = text_of(list);
    (void)printf("%s", label);
    if (rest.size == 0)
        (void)printf("none");
    while (rest.size > 0) {
        struct text item = text_cut(&rest, '\n');
        (void)printf("%.*s%s", (int)item.size, item.at, rest.size > 0 ? ", " : "");
    }
    (void)putchar('\n');
}

static yyjson_mut_val *list_json(yyjson_mut_doc *doc, const char *list)
{
    yyjson_mut_val *array = yyjson_mut_arr(doc);
    struct text rest = text_of(list);
    while (rest.size > 0) {
        struct text item = text_cut(&rest, '\n');
        (void)yyjson_mut_arr_add_strncpy(doc, array, item.at, item.size);
    }
    return array;
}

static yyjson_mut_val *game_record_json(yyjson_mut_doc *doc, const struct game_record *record)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    char updated[CLOCK_TEXT_SIZE];
    const char *volatility = game_volatility_name(record->volatility);
    clock_format_rfc3339(record->updated_ms, updated);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "id", record->id);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "name", record->name);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "provider", record->provider_id);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "category", record->category);
    (void)yyjson_mut_obj_add_val(doc, object, "features", list_json(doc, record->features));
    (void)yyjson_mut_obj_add_val(doc, object, "rtp_bps",
                                 record->rtp_bps < 0 ? yyjson_mut_null(doc)
                                                     : yyjson_mut_int(doc, record->rtp_bps));
    (void)yyjson_mut_obj_add_val(doc, object, "volatility",
                                 volatility == NULL ? yyjson_mut_null(doc)
                                                    : yyjson_mut_str(doc, volatility));
    (void)yyjson_mut_obj_add_val(doc, object, "thumbnail_url",
                                 record->thumbnail_url[0] == '\0'
                                     ? yyjson_mut_null(doc)
                                     : yyjson_mut_strcpy(doc, record->thumbnail_url));
    (void)yyjson_mut_obj_add_bool(doc, object, "demo", record->demo);
    (void)yyjson_mut_obj_add_val(doc, object, "currencies", list_json(doc, record->currencies));
    (void)yyjson_mut_obj_add_val(doc, object, "languages", list_json(doc, record->languages));
    (void)yyjson_mut_obj_add_val(doc, object, "devices", list_json(doc, record->devices));
    (void)yyjson_mut_obj_add_bool(doc, object, "enabled", record->enabled);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "updated_at", updated);
    return object;
}

static void print_game(const struct command_line *line, const struct game_record *record)
{
    char updated[CLOCK_TEXT_SIZE];
    if (command_json(line)) {
        yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        command_print_value(doc, game_record_json(doc, record));
        return;
    }
    const char *volatility = game_volatility_name(record->volatility);
    clock_format_rfc3339(record->updated_ms, updated);
    (void)printf("id          %s\n", record->id);
    (void)printf("name        %s\n", record->name);
    (void)printf("provider    %s\n", record->provider_id);
    (void)printf("enabled     %s\n", record->enabled ? "yes" : "no");
    if (!record->usable)
        (void)puts(
            "usable      no: the stored record cannot be read, so it is hidden; import it again");
    (void)printf("category    %s\n", record->category);
    print_list("features    ", record->features);
    if (record->rtp_bps >= 0)
        (void)printf("rtp         %d.%02d %%\n", (int)record->rtp_bps / 100,
                     (int)record->rtp_bps % 100);
    (void)printf("volatility  %s\n", volatility != NULL ? volatility : "not told");
    (void)printf("thumbnail   %s\n",
                 record->thumbnail_url[0] != '\0' ? record->thumbnail_url : "none");
    (void)printf("demo        %s\n", record->demo ? "yes" : "no");
    print_list("currencies  ", record->currencies);
    print_list("languages   ", record->languages);
    print_list("devices     ", record->devices);
    (void)printf("updated     %s\n", updated);
}

/* ---- import ---------------------------------------------------------------------------------- */

/* The ids of all providers. */
struct provider_ids {
    char (*ids)[PROVIDER_ID_SIZE];
    size_t count, room;
};

static bool note_provider(void *context, const struct provider_record *record)
{
    struct provider_ids *found = context;
    if (found->count == found->room) {
        found->room = found->room == 0 ? 16 : found->room * 2;
        found->ids = memory_resize(found->ids, found->room * sizeof found->ids[0]);
    }
    memcpy(found->ids[found->count++], record->id, PROVIDER_ID_SIZE);
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* They come in order. */
static bool has_provider(void *context, struct text id)
{
    const struct provider_ids *found = context;
    char key[PROVIDER_ID_SIZE] = "";
    if (id.size >= sizeof key || found->count == 0)
        return false;
    memcpy(key, id.at, id.size);
    return bsearch(key, found->ids, found->count, sizeof found->ids[0], compare_ids) != NULL;
}

static void print_imported(const struct command_line *line, const struct games_put_result *result)
{
    if (command_json(line))
        (void)printf("{\"added\": %zu, \"changed\": %zu, \"unchanged\": %zu}\n", result->added,
                     result->changed, result->unchanged);
    else
        (void)printf("%zu added, %zu changed, %zu as they were.\n", result->added, result->changed,
                     result->unchanged);
}

static enum status import(struct platform_store *store, const char *name, struct text text,
                          struct games_put_result *result, struct error *error)
{
    struct provider_ids providers = {0};
    struct games_document document = {0};
    uint64_t revision;
    const struct record_visitor visit = {.provider = note_provider, .context = &providers};
    enum status status = platform_games_read(store, &visit, &revision, error);
    if (status == STATUS_OK)
        status = games_document_read(&document, name, text, has_provider, &providers, error);
    if (status == STATUS_OK)
        status = platform_games_put(store, document.records, document.set_enabled, document.count,
                                    clock_wall_ms(), result, error);
    games_document_free(&document);
    memory_free(providers.ids);
    return status;
}

static int run_import(const struct command_line *line)
{
    struct buffer text = {0};
    struct platform_store *store = NULL;
    struct games_put_result result = {0};
    struct error error = {0};
    const char *name = NULL;
    if (command_read_document(command_argument(line, 0), GAMES_DOCUMENT_MAX, &name, &text,
                              &error) != STATUS_OK) {
        buffer_free(&text);
        return command_refuse(line, "%s", error.text);
    }
    if (!command_open_platform(line, false, &store)) {
        buffer_free(&text);
        return EXIT_REFUSED;
    }
    enum status status = import(store, name, buffer_text(&text), &result, &error);
    platform_store_close(&store);
    buffer_free(&text);
    if (status != STATUS_OK)
        return command_refuse(line, "%s; nothing was imported", error.text);
    print_imported(line, &result);
    return EXIT_DONE;
}

/* ---- list, show ------------------------------------------------------------------------------ */

static bool list_game(void *context, const struct game_record *record)
{
    struct listing *listing = context;
    if (listing->doc != NULL) {
        listing_add(listing, game_record_json(listing->doc, record));
        return true;
    }
    table_cell(listing->table, "%s", record->id);
    table_cell(listing->table, "%s", record->name);
    table_cell(listing->table, "%s", record->provider_id);
    table_cell(listing->table, "%s", record->category);
    table_cell(listing->table, "%s", !record->usable ? "unusable" : record->enabled ? "yes" : "no");
    table_cell(listing->table, "%s", record->demo ? "yes" : "no");
    table_time(listing->table, record->updated_ms);
    return true;
}

static int run_list(const struct command_line *line)
{
    static const char *const headers[] = {"ID",      "NAME", "PROVIDER",      "CATEGORY",
                                          "ENABLED", "DEMO", "UPDATED (UTC)", NULL};
    struct listing listing;
    struct platform_store *store = NULL;
    struct error error = {0};
    uint64_t revision;
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    listing_begin(&listing, line, headers);
    const struct record_visitor visit = {.game = list_game, .context = &listing};
    enum status status = platform_games_read(store, &visit, &revision, &error);
    platform_store_close(&store);
    return listing_end(&listing, line, status, &error);
}

static int refuse_game(const struct command_line *line, enum status status, const char *id,
                       const struct error *error)
{
    if (status == STATUS_NOT_FOUND)
        return command_refuse(line, "there is no game '%.*s'", 64, id);
    return command_fail(line, status, error);
}

static int run_show(const struct command_line *line)
{
    const char *id = command_argument(line, 0);
    struct game_record record;
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = platform_game_get(store, id, &record, &error);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return refuse_game(line, status, id, &error);
    print_game(line, &record);
    return EXIT_DONE;
}

/* ---- enable, disable ------------------------------------------------------------------------- */

static int switch_game(const struct command_line *line, bool enabled)
{
    const char *id = command_argument(line, 0);
    struct game_record record;
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = platform_game_enable(store, id, enabled, clock_wall_ms(), &error);
    if (status == STATUS_OK)
        status = platform_game_get(store, id, &record, &error);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return refuse_game(line, status, id, &error);
    if (command_json(line))
        print_game(line, &record);
    else
        (void)printf("%s is %s.\n", record.id, enabled ? "enabled" : "disabled");
    return EXIT_DONE;
}

static int run_enable(const struct command_line *line)
{
    return switch_game(line, true);
}

static int run_disable(const struct command_line *line)
{
    return switch_game(line, false);
}

/* ---- allow ----------------------------------------------------------------------------------- */

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The arguments after the customer as a list: in order, each once. */
static size_t append_ids(const struct command_line *line, struct buffer *list)
{
    size_t count = command_argument_count(line) - 1;
    size_t kept = 0;
    const char **ids = memory_alloc_zeroed(count, sizeof ids[0]);
    for (size_t i = 0; i < count; i++)
        ids[i] = command_argument(line, i + 1);
    qsort(ids, count, sizeof ids[0], compare_strings);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(ids[i], ids[i - 1]) == 0)
            continue;
        if (kept++ > 0)
            buffer_append_char(list, '\n');
        buffer_append_string(list, ids[i]);
    }
    memory_free(ids);
    return kept;
}

static void print_policy_json(const struct game_policy_record *record)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    yyjson_mut_val *games = yyjson_mut_arr(doc);
    struct text rest = record->games;
    while (rest.size > 0) {
        struct text id = text_cut(&rest, '\n');
        (void)yyjson_mut_arr_add_strncpy(doc, games, id.at, id.size);
    }
    (void)yyjson_mut_obj_add_strcpy(doc, object, "customer", record->customer_id);
    (void)yyjson_mut_obj_add_val(doc, object, "games",
                                 record->every_game ? yyjson_mut_str(doc, "all") : games);
    command_print_value(doc, object);
}

static void print_policy_line(const struct game_policy_record *record, size_t count)
{
    if (record->every_game)
        (void)printf("%s may use every game.\n", record->customer_id);
    else
        (void)printf("%s may use %zu game%s.\n", record->customer_id, count, count == 1 ? "" : "s");
}

static void note_lack_of_casino(const struct command_line *line, const char *customer_id)
{
    char program[PROGRAM_TEXT_SIZE];
    command_program(line, program);
    command_note(line, "it may not use the casino until: %s customer set %s --casino", program,
                 customer_id);
}

/* The customer's list, with a hint where it has no effect. */
static enum status allow(const struct command_line *line, struct platform_store *store,
                         const struct game_policy_record *record, struct error *error)
{
    struct customer_record customer = {0};
    enum status status = customers_get(store, record->customer_id, &customer, error);
    if (status != STATUS_OK)
        return status;
    bool casino = customer.casino;
    customer_record_free(&customer);
    status = platform_game_policy_put(store, record, error);
    if (status == STATUS_OK && !casino)
        note_lack_of_casino(line, record->customer_id);
    return status;
}

/* Prints the refusal of what cannot be a customer's id and returns false. */
static bool take_customer(const struct command_line *line, char out[CUSTOMER_ID_SIZE])
{
    const char *customer = command_argument(line, 0);
    if (strlen(customer) >= CUSTOMER_ID_SIZE) {
        (void)command_refuse(line, "there is no customer '%.*s'", 64, customer);
        return false;
    }
    memcpy(out, customer, strlen(customer) + 1);
    return true;
}

static int run_allow(const struct command_line *line)
{
    struct game_policy_record record = {0};
    struct platform_store *store = NULL;
    struct error error = {0};
    struct buffer list = {0};
    size_t count = 0;
    if (!take_customer(line, record.customer_id))
        return EXIT_REFUSED;
    for (size_t i = 1; i < command_argument_count(line); i++) {
        const char *id = command_argument(line, i);
        if (!game_id_is_sound(text_of(id)))
            return command_usage(line, "'%.*s' is not a game id: 1 to 64 of a-z, 0-9 and '-'", 64,
                                 id);
        record.every_game |= strcmp(id, "all") == 0;
    }
    if (record.every_game && command_argument_count(line) > 2)
        return command_usage(line, "give 'all', or the games, but not both");
    if (!record.every_game)
        count = append_ids(line, &list);
    record.games = buffer_text(&list);
    if (!command_open_platform(line, false, &store)) {
        buffer_free(&list);
        return EXIT_REFUSED;
    }
    enum status status = allow(line, store, &record, &error);
    platform_store_close(&store);
    if (status == STATUS_OK && command_json(line))
        print_policy_json(&record);
    else if (status == STATUS_OK)
        print_policy_line(&record, count);
    buffer_free(&list);
    return status == STATUS_OK ? EXIT_DONE : command_fail(line, status, &error);
}

/* ---- allowed --------------------------------------------------------------------------------- */

struct policy_search {
    struct game_policy_record record; /* whose it is; then what was found */
    struct buffer games;
};

static bool find_policy(void *context, const struct game_policy_record *record)
{
    struct policy_search *search = context;
    if (strcmp(record->customer_id, search->record.customer_id) != 0)
        return true;
    search->record.every_game = record->every_game;
    buffer_append_text(&search->games, record->games);
    return true;
}

/* Whoever has no list may use every game. */
static enum status read_policy(struct platform_store *store, struct policy_search *search,
                               bool *casino, struct error *error)
{
    const struct record_visitor visit = {.policy = find_policy, .context = search};
    struct customer_record customer = {0};
    uint64_t revision;
    enum status status = customers_get(store, search->record.customer_id, &customer, error);
    if (status != STATUS_OK)
        return status;
    *casino = customer.casino;
    customer_record_free(&customer);
    search->record.every_game = true;
    status = platform_games_read(store, &visit, &revision, error);
    search->record.games = buffer_text(&search->games);
    return status;
}

static int run_allowed(const struct command_line *line)
{
    struct policy_search search = {0};
    struct platform_store *store = NULL;
    struct error error = {0};
    bool casino = false;
    if (!take_customer(line, search.record.customer_id) ||
        !command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = read_policy(store, &search, &casino, &error);
    platform_store_close(&store);
    if (status == STATUS_OK && command_json(line)) {
        print_policy_json(&search.record);
    } else if (status == STATUS_OK) {
        size_t count = 0;
        for (struct text rest = search.record.games; rest.size > 0; count++)
            (void)text_cut(&rest, '\n');
        print_policy_line(&search.record, count);
        if (count > 0)
            (void)puts(buffer_string(&search.games));
    }
    if (status == STATUS_OK && !casino)
        note_lack_of_casino(line, search.record.customer_id);
    buffer_free(&search.games);
    return status == STATUS_OK ? EXIT_DONE : command_fail(line, status, &error);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command game_commands[] = {
    {.name = "import",
     .arguments = "FILE|-",
     .least = 1,
     .most = 1,
     .summary = "add or change games, from JSON",
     .details =
         "FILE is an array of games; '-' is standard input. A game with an id that is there "
         "already\n"
         "is replaced, others stay as they are. All or nothing: the first mistake is told with "
         "its\n"
         "line and column, and then nothing has changed.\n"
         "\n"
         "A game has these members, of which the first four are required:\n"
         "  id             1 to 64 of a-z, 0-9 and '-'; permanent\n"
         "  name           1 to 128 bytes; customers see it and search in it\n"
         "  provider       the id of a provider ('croupier provider add')\n"
         "  category       1 to 64 bytes: \"slots\"\n"
         "  features       an array of texts of 1 to 64 bytes\n"
         "  rtp_bps        0 to 10000: return to player in hundredths of a percent; or null\n"
         "  volatility     \"low\", \"medium\", \"high\" or null\n"
         "  thumbnail_url  http:// or https://, or null\n"
         "  demo           may it be played without money? (false)\n"
         "  currencies     an array of ISO 4217 codes; none: it cannot be played for money\n"
         "  languages      an array of texts: \"en\", \"pt-BR\"\n"
         "  devices        an array of texts: \"desktop\", \"mobile\"\n"
         "  enabled        true or false; left out, a game that is there stays as it is, and a "
         "new\n"
         "                 one is enabled\n"
         "What 'game list --json' prints can be imported again.",
     .examples = "croupier game import games.json\n"
                 "croupier game list --json | sed 's/\"EUR\"/\"EUR\", \"SEK\"/' | croupier game "
                 "import -",
     .run = run_import},
    {.name = "list",
     .arguments = "",
     .summary = "all games",
     .details = "In the order of their ids. --json prints an array of the objects that 'game show\n"
                "--json' prints.",
     .examples = "croupier game list\n"
                 "croupier game list --json | jq -r '.[] | select(.enabled | not) | .id'",
     .run = run_list},
    {.name = "show",
     .arguments = "ID",
     .least = 1,
     .most = 1,
     .summary = "one game",
     .details = "Everything that is stored about it.",
     .examples = "croupier game show book-of-sand\n"
                 "croupier game show book-of-sand --json",
     .run = run_show},
    {.name = "enable",
     .arguments = "ID",
     .least = 1,
     .most = 1,
     .summary = "show a disabled game again",
     .details = "It is listed and can be launched within a second, if its provider is enabled.",
     .examples = "croupier game enable book-of-sand",
     .run = run_enable},
    {.name = "disable",
     .arguments = "ID",
     .least = 1,
     .most = 1,
     .summary = "hide a game",
     .details = "Within a second nobody sees or launches it. The wallet goes on: rounds that are\n"
                "under way can be settled and rolled back.",
     .examples = "croupier game disable book-of-sand",
     .run = run_disable},
    {.name = "allow",
     .arguments = "CUSTOMER all|GAME…",
     .least = 2,
     .most = UINT_MAX,
     .summary = "which games a customer may use",
     .details =
         "Replaces the customer's list: either all games, also those that are added later, or the\n"
         "ones that are named. A customer that may use the casino ('customer add --casino') "
         "begins\n"
         "with all, and keeps its list while the casino is taken from it. A running server\n"
         "follows within a second.",
     .examples = "croupier game allow cus_7Qm2Zt0aXw9Lk3Rb book-of-sand dune-roulette\n"
                 "croupier game allow cus_7Qm2Zt0aXw9Lk3Rb all",
     .run = run_allow},
    {.name = "allowed",
     .arguments = "CUSTOMER",
     .least = 1,
     .most = 1,
     .summary = "the games that a customer may use",
     .details =
         "All games, or the ids that 'game allow' named, one a line; whether a game and its\n"
         "provider are enabled is not considered. --json prints what 'game allow' prints.",
     .examples = "croupier game allowed cus_7Qm2Zt0aXw9Lk3Rb",
     .run = run_allowed},
    {0},
};
