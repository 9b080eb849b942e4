/*
 * The general handlers work by the table of fields of a resource; the rest of this file is for
 * resources that differ. Functions of operator/ do the work, as they do for commands.
 */
#include "console/resources.h"

#include "base/clock.h"
#include "base/memory.h"
#include "console/body.h"
#include "console/error_rows.h"
#include "console/handlers.h"
#include "console/routes.h"
#include "operator/keys.h"
#include "operator/players.h"
#include "operator/tables.h"
#include "operator/tokens.h"
#include "stores/platform_usage.h"

/* ---- one record ------------------------------------------------------------------------------ */

void console_answer(struct console_call *call)
{
    resource_write(call->route->resource, call->record, &call->json);
    console_tag_answer(call);
}

/* The tag does not cover it: a later GET of the record does not show it. */
void console_answer_once(struct console_call *call, const char *name, struct text value)
{
    call->answer.size--;
    buffer_append_format(&call->answer, ",\"%s\":\"%.*s\"}", name, (int)value.size, value.at);
}

static enum status answered(struct console_call *call, enum status status)
{
    if (status == STATUS_OK)
        console_answer(call);
    return status;
}

enum status console_show(struct console_call *call, struct error *error)
{
    return answered(
        call, resource_get(call->route->resource, call->store, call->id, call->record, error));
}

static void name_field(struct console_call *call, const char *name)
{
    if (name != NULL)
        (void)snprintf(call->field, sizeof call->field, "%s", name);
}

/* The setting is applied before the others, which may say otherwise. False: it is not there. */
static bool put_first(struct console_settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->list[i].name, name) == 0) {
            const struct setting first = settings->list[i];
            settings->list[i] = settings->list[0];
            settings->list[0] = first;
            return true;
        }
    return false;
}

/* Reads the settings from the body; a refusal names the field. */
static enum status read_settings(struct console_call *call, bool add,
                                 struct console_settings *settings, struct error *error)
{
    const struct resource *resource = call->route->resource;
    enum status status =
        console_settings_read(resource, add, call->body, settings, call->field, error);
    for (size_t i = 0; i < settings->count && status == STATUS_OK; i++)
        if (field_find(resource->fields, settings->list[i].name)->owners &&
            call->signed_in.who.role < ROLE_OWNER) {
            call->refusal = &error_role_too_low;
            status = error_conflict(error, "%s: only owners change it", settings->list[i].name);
        }
    return status;
}

static void note_refusal(void *context, const char *name, const char *reason)
{
    struct console_call *call = context;
    struct json_writer json = {.out = &call->refusals};
    if (call->refusals.size > 0)
        buffer_append_string(&call->refusals, ",");
    json_object(&json, NULL);
    json_string(&json, "field", name);
    json_string(&json, "message", reason);
    json_end(&json);
}

enum status console_make(struct console_call *call, const struct console_making *making,
                         struct error *error)
{
    const char *missing = NULL;
    struct console_settings settings;
    enum status status = read_settings(call, true, &settings, error);
    bool sound = status == STATUS_OK;
    for (size_t i = CONSOLE_REQUIRED_MAX; i-- > 0 && sound;) /* the first comes to stand first */
        if (making->required[i] != NULL && !put_first(&settings, making->required[i])) {
            missing = making->required[i];
            note_refusal(call, missing, "is required");
        }
    if (status == STATUS_OK && missing != NULL)
        status = error_invalid(error, "%s: is required", missing);
    if (status == STATUS_OK) {
        const char *wrong = NULL;
        const struct resource_edit edit = {.settings = settings.list,
                                           .edit = making->edit,
                                           .context = making->context,
                                           .wrong = &wrong};
        status = resource_make(call->route->resource, &edit, call->now_ms, call->record, error);
        name_field(call, wrong);
    }
    if (status == STATUS_INVALID && sound) /* a person corrects all fields of a form at once */
        resource_refusals(call->route->resource, settings.list, note_refusal, call);
    console_settings_free(&settings);
    return status;
}

enum status console_insert(struct console_call *call, struct error *error)
{
    enum status status = resource_insert(call->route->resource, call->store, call->record, error);
    if (status == STATUS_OK)
        call->status = 201;
    return status;
}

enum status console_add(struct console_call *call, struct error *error)
{
    const struct console_making making = {
        .required = {call->route->resource == &address_resource ? "address" : "name"}};
    enum status status = console_make(call, &making, error);
    if (status == STATUS_OK)
        status = console_insert(call, error);
    return answered(call, status);
}

static enum status expect_tag(const void *context, const void *record, struct error *error)
{
    struct console_call *call = *(struct console_call *const *)context;
    struct buffer document = {0};
    struct json_writer json = {.out = &document};
    char tag[CONSOLE_TAG_SIZE];
    resource_write(call->route->resource, record, &json);
    console_tag(buffer_text(&document), tag);
    buffer_free(&document);
    return text_equals(call->if_match, text_of(tag)) ? STATUS_OK : console_changed(call, error);
}

/* Sets, or removes, the record of the call. */
static enum status change(struct console_call *call, const struct console_settings *settings,
                          struct error *error)
{
    const char *wrong = NULL;
    const struct resource_edit edit = {
        .settings = settings != NULL ? settings->list : NULL,
        .remove = settings == NULL,
        .context = &call,
        .expect = call->if_match.at != NULL ? expect_tag : NULL,
        .wrong = &wrong,
    };
    enum status status =
        resource_change(call->route->resource, call->store, call->id, &edit, call->record, error);
    name_field(call, wrong);
    return status;
}

enum status console_change(struct console_call *call, struct error *error)
{
    struct console_settings settings;
    enum status status = read_settings(call, false, &settings, error);
    if (status == STATUS_OK) {
        status = change(call, &settings, error);
        if (status == STATUS_INVALID)
            resource_refusals(call->route->resource, settings.list, note_refusal, call);
    }
    console_settings_free(&settings);
    return answered(call, status);
}

enum status console_remove(struct console_call *call, struct error *error)
{
    call->status = 204;
    return change(call, NULL, error);
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct listing {
    struct console_call *call;
    struct console_page page;
    const char *provider; /* of games; "": any */
    uint64_t met;         /* found by the search */
};

/* Has its id, or a text of it, the words in it, in capitals or not? */
static bool has_words(const struct listing *listing, const void *record)
{
    const struct resource *resource = listing->call->route->resource;
    struct buffer id = {0};
    bool found = listing->page.words[0] == '\0';
    for (const struct field *field = resource->fields; field->type != NULL && !found; field++)
        if (field->type == &field_text || field->type == &field_text_or_null)
            found = strcasestr(field_value(field, record), listing->page.words) != NULL;
    if (!found) {
        resource_append_id(resource, record, &id);
        found = strcasestr(buffer_string(&id), listing->page.words) != NULL;
        buffer_free(&id);
    }
    return found;
}

static bool is_searched_for(const struct listing *listing, const void *record)
{
    if (listing->provider[0] != '\0' && listing->call->route->resource->kind == RECORD_GAME &&
        strcmp(((const struct game_record *)record)->provider_id, listing->provider) != 0)
        return false;
    return has_words(listing, record);
}

/* Counts every record, and writes those of the page. */
static bool list_record(void *context, const void *record)
{
    struct listing *listing = context;
    const struct console_page *page = &listing->page;
    if (!is_searched_for(listing, record))
        return true;
    if (listing->met >= page->offset && listing->met - page->offset < page->limit)
        resource_write(listing->call->route->resource, record, &listing->call->json);
    listing->met++;
    return true;
}

static enum status begin_list(struct console_call *call, struct listing *listing)
{
    *listing = (struct listing){.call = call};
    console_page(&call->query, &listing->page);
    listing->provider = console_parameter(&call->query, "provider");
    json_object(&call->json, NULL);
    json_array(&call->json, "items");
    return call->query.status;
}

enum status console_list(struct console_call *call, struct error *error)
{
    struct listing listing;
    const char *customer = console_parameter(&call->query, "customer");
    enum status status = call->query.status;
    if (status == STATUS_OK && customer[0] == '\0' && call->route->resource == &key_resource)
        return error_invalid(error, "customer: is required");
    if (status == STATUS_OK)
        status = begin_list(call, &listing);
    if (status == STATUS_OK)
        status =
            resource_list(call->route->resource, call->store,
                          call->id[0] != '\0' ? call->id : customer, list_record, &listing, error);
    if (status == STATUS_OK) /* rows are never deleted, and stay in their order */
        console_end_page(&call->json, listing.met, console_next(&listing.page, listing.met));
    return status;
}

enum status console_reset_conduct(struct console_call *call, struct error *error)
{
    call->status = 204;
    return platform_conduct_reset(call->store, call->id, error);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* A 201 with the secret, which is seen this once. */
static enum status answer_issued(struct console_call *call, enum status status, const char *name,
                                 char *secret)
{
    if (status != STATUS_OK)
        return status;
    console_answer(call);
    console_answer_once(call, name, text_of(secret));
    explicit_bzero(secret, strlen(secret));
    call->status = 201;
    return STATUS_OK;
}

enum status console_issue_key(struct console_call *call, struct error *error)
{
    char key[KEY_SIZE] = "";
    const struct console_making making = {.required = {"customer"}};
    enum status status = console_make(call, &making, error);
    if (status == STATUS_OK)
        status = keys_issue(call->store, call->record, key, error);
    return answer_issued(call, status, "key", key);
}

enum status console_revoke_key(struct console_call *call, struct error *error)
{
    return answered(call, keys_revoke(call->store, call->id, call->now_ms, call->record, error));
}

/* ---- players --------------------------------------------------------------------------------- */

static enum status write_players(struct listing *listing, const struct players_page *players,
                                 struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < players->count && status == STATUS_OK; i++) {
        struct player_view player;
        status = players_view(listing->call->store, &players->players[i], &player, error);
        if (status == STATUS_OK)
            resource_write(&player_resource, &player, &listing->call->json);
    }
    return status;
}

enum status console_list_players(struct console_call *call, struct error *error)
{
    const char *customer = console_parameter(&call->query, "customer");
    struct listing listing;
    struct players_page players;
    enum status status = begin_list(call, &listing);
    if (status != STATUS_OK)
        return status;
    const struct console_page *page = &listing.page;
    status = platform_players_active(call->store, customer, page->words, page->offset, page->limit,
                                     &players, error);
    if (status == STATUS_OK)
        status = write_players(&listing, &players, error);
    if (status == STATUS_OK)
        console_end_page(&call->json, players.found, players.next);
    return status;
}

/* The player's own block; the answer is the player. */
enum status console_block_player(struct console_call *call, struct error *error)
{
    const char *wrong = NULL;
    struct block_view block;
    struct console_settings settings;
    enum status status =
        console_settings_read(&block_resource, false, call->body, &settings, call->field, error);
    if (status == STATUS_OK) {
        const struct resource_edit edit = {.settings = settings.list, .wrong = &wrong};
        status = resource_change(&block_resource, call->store, call->id, &edit, &block, error);
        name_field(call, wrong);
    }
    console_settings_free(&settings);
    return status == STATUS_OK ? console_show(call, error) : status;
}

/* ---- operators ------------------------------------------------------------------------------- */

/* Adds a link to a document that is an object with members. The link is the part after the page's
 * own address, which the browser knows. */
static enum status append_link(struct console_call *call, struct error *error)
{
    const struct operator_record *record = call->record;
    struct credential link;
    char expires_at[CLOCK_TEXT_SIZE];
    enum status status =
        credential_make_link(call->store, record->name, call->now_ms, &link, error);
    if (status != STATUS_OK)
        return status;
    clock_format_rfc3339(link.record.expires_ms, expires_at);
    call->answer.size--;
    buffer_append_format(&call->answer, ",\"link\":\"/#/sign-in/%s\",\"link_expires_at\":\"%s\"}",
                         link.secret, expires_at);
    explicit_bzero(&link, sizeof link);
    call->status = 201;
    return STATUS_OK;
}

enum status console_add_operator(struct console_call *call, struct error *error)
{
    enum status status = console_add(call, error);
    return status == STATUS_OK ? append_link(call, error) : status;
}

enum status console_link_operator(struct console_call *call, struct error *error)
{
    enum status status = console_show(call, error);
    return status == STATUS_OK ? append_link(call, error) : status;
}

enum status console_issue_token(struct console_call *call, struct error *error)
{
    char token[CREDENTIAL_SIZE] = "";
    const struct console_making making = {.required = {"name", "role"}};
    enum status status = console_make(call, &making, error);
    if (status == STATUS_OK)
        status = tokens_issue(call->store, call->record, token, error);
    return answer_issued(call, status, "token", token);
}

enum status console_revoke_token(struct console_call *call, struct error *error)
{
    return answered(call, tokens_revoke(call->store, call->id, call->now_ms, call->record, error));
}

enum status console_end_session(struct console_call *call, struct error *error)
{
    call->status = 204;
    return credential_end(call->store, call->id, call->now_ms, error);
}
