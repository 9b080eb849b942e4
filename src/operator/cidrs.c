/* Lists of address blocks as operators handle them: a type of field; see field.h. */
#include "operator/field.h"

#include "records/customer.h"

/* Returns where the block is, or `count`. */
static size_t find(const struct cidr *cidrs, size_t count, const struct cidr *wanted)
{
    size_t at = 0;
    while (at < count && (cidrs[at].prefix != wanted->prefix ||
                          !address_equals(&cidrs[at].network, &wanted->network)))
        at++;
    return at;
}

static enum status next(struct text *rest, struct cidr *one, struct error *error)
{
    return cidr_parse(text_trim(text_cut(rest, ',')), one, error);
}

/* Appends the blocks of a text to an array; one that is there is not added again. */
static enum status append(struct text text, struct cidr *cidrs, size_t room, size_t *count,
                          struct error *error)
{
    size_t found = *count;
    while (text.at != NULL) {
        struct cidr one;
        enum status status = next(&text, &one, error);
        if (status != STATUS_OK)
            return status;
        if (find(cidrs, found, &one) < found)
            continue;
        if (found == room)
            return error_invalid(error, "there may be at most %zu CIDR blocks", room);
        cidrs[found++] = one;
    }
    *count = found;
    return STATUS_OK;
}

static size_t *count_of(const struct field *field, void *record)
{
    return (void *)((char *)record + field->beside);
}

static enum status add(const struct field *field, struct text text, void *record,
                       struct error *error)
{
    return append(text, field_value_to_set(field, record), field->room / sizeof(struct cidr),
                  count_of(field, record), error);
}

static enum status remove_blocks(const struct field *field, struct text text, void *record,
                                 struct error *error)
{
    struct cidr *cidrs = field_value_to_set(field, record);
    size_t *count = count_of(field, record);
    while (text.at != NULL) {
        struct cidr one;
        enum status status = next(&text, &one, error);
        if (status != STATUS_OK)
            return status;
        size_t at = find(cidrs, *count, &one);
        if (at == *count)
            continue;
        for ((*count)--; at < *count; at++)
            cidrs[at] = cidrs[at + 1];
    }
    return STATUS_OK;
}

/* ---- an array of a record -------------------------------------------------------------------- */

static void write_json(const struct field *field, const struct cidr *cidrs, size_t count,
                       struct json_writer *json)
{
    char text[CIDR_TEXT_SIZE];
    json_array(json, field->name);
    for (size_t i = 0; i < count; i++) {
        cidr_format(&cidrs[i], text);
        json_string(json, NULL, text);
    }
    json_end(json);
}

static bool write_array(const struct field *field, const void *record,
                        const struct field_output *out)
{
    const struct cidr *cidrs = field_value(field, record);
    size_t count = *(const size_t *)(const void *)((const char *)record + field->beside);
    struct text words = text_of(field->words);
    if (out->json != NULL)
        write_json(field, cidrs, count, out->json);
    else if (count == 0) /* in a list, what stands before the colon */
        buffer_append_text(out->text, out->brief ? text_cut(&words, ':') : words);
    else
        cidr_list_append(out->text, cidrs, out->brief ? 1 : count);
    if (out->json == NULL && out->brief && count > 1)
        buffer_append_format(out->text, " and %zu more", count - 1);
    return true;
}

static enum status set_array(const struct field *field, struct text text, void *record,
                             struct error *error)
{
    struct cidr found[CIDRS_MAX];
    size_t room = field->room / sizeof found[0];
    size_t count = 0;
    CHECK(room <= CIDRS_MAX);
    enum status status = append(text, found, room, &count, error);
    if (status != STATUS_OK)
        return status;
    memcpy(field_value_to_set(field, record), found, count * sizeof found[0]);
    *count_of(field, record) = count;
    return STATUS_OK;
}

const struct field_type field_cidrs = {write_array, set_array};
const struct field_type field_cidrs_added = {NULL, add};
const struct field_type field_cidrs_removed = {NULL, remove_blocks};
