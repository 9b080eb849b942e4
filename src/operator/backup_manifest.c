/* The manifest of a backup; see backup.h. */

#include "base/clock.h"
#include "base/json_text.h"
#include "base/json_writer.h"
#include "base/strict_json.h"
#include "operator/backup.h"

#define FORMAT 1

const char *const backup_part_names[BACKUP_PART_COUNT] = {
    [BACKUP_PLATFORM] = "platform.db",
    [BACKUP_ODDS] = "odds.mdb",
    [BACKUP_SECRETS_KEY] = "secrets.key",
};

void backup_manifest_write(const struct backup_manifest *manifest, struct buffer *out)
{
    struct json_writer json = {.out = out, .layout = JSON_INDENTED};
    json_object(&json, NULL);
    json_integer(&json, "format", FORMAT);
    json_string(&json, "program", manifest->program);
    json_time(&json, "made_at", manifest->made_ms);
    json_unsigned(&json, "schema", manifest->schema);
    json_array(&json, "files");
    for (size_t i = 0; i < BACKUP_PART_COUNT; i++) {
        const struct file_print *print = &manifest->parts[i].print;
        if (!manifest->parts[i].there)
            continue;
        json_object(&json, NULL);
        json_string(&json, "name", backup_part_names[i]);
        json_time(&json, "as_of", manifest->parts[i].as_of_ms);
        json_unsigned(&json, "bytes", print->bytes);
        json_hex(&json, "sha256", print->sha256, sizeof print->sha256);
        json_end(&json);
    }
    json_end_all(&json);
    buffer_append_char(out, '\n');
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_text(struct text object, const char *name, char *out, size_t room)
{
    return strict_json_string(json_text_member(object, text_of(name)), out, room);
}

static bool read_time(struct text object, const char *name, int64_t *ms)
{
    char text[CLOCK_TEXT_SIZE];
    return read_text(object, name, text, sizeof text) &&
           clock_parse_rfc3339(text_of(text), ms) == STATUS_OK;
}

static bool read_count(struct text object, const char *name, uint64_t most, uint64_t *count)
{
    struct text value = json_text_member(object, text_of(name));
    return value.at != NULL && text_to_u64(value, most, count) == STATUS_OK;
}

static bool read_part(struct text file, struct backup_manifest *manifest)
{
    char name[32], sha256[2 * DIGEST_SIZE + 1];
    if (json_text_kind(file) != JSON_TEXT_OBJECT || !read_text(file, "name", name, sizeof name))
        return false;
    size_t part = text_find(text_of(name), backup_part_names, BACKUP_PART_COUNT);
    if (part == BACKUP_PART_COUNT || manifest->parts[part].there)
        return false;
    manifest->parts[part].there = true;
    struct file_print *print = &manifest->parts[part].print;
    return read_count(file, "bytes", UINT64_MAX, &print->bytes) &&
           read_time(file, "as_of", &manifest->parts[part].as_of_ms) &&
           read_text(file, "sha256", sha256, sizeof sha256) &&
           hex_read(text_of(sha256), print->sha256, DIGEST_SIZE);
}

static bool read_members(struct text root, struct backup_manifest *manifest)
{
    struct text files = json_text_member(root, TEXT("files")), file;
    uint64_t schema;
    if (!read_text(root, "program", manifest->program, sizeof manifest->program) ||
        !read_count(root, "schema", UINT32_MAX, &schema) || files.at == NULL ||
        json_text_kind(files) != JSON_TEXT_ARRAY || !read_time(root, "made_at", &manifest->made_ms))
        return false;
    manifest->schema = (uint32_t)schema;
    struct json_text_cursor cursor = json_text_open(files);
    while (json_text_next_element(&cursor, &file))
        if (!read_part(file, manifest))
            return false;
    return manifest->parts[BACKUP_PLATFORM].there;
}

enum status backup_manifest_read(struct text text, struct backup_manifest *manifest,
                                 struct error *error)
{
    struct backup_manifest found = {.made_ms = 0};
    struct text root = json_text_trim(text);
    uint64_t format;
    if (json_text_check(text, NULL, NULL) != STATUS_OK ||
        json_text_kind(root) != JSON_TEXT_OBJECT ||
        !read_count(root, "format", UINT64_MAX, &format))
        format = 0;
    if (format > FORMAT)
        return error_set(error, STATUS_MALFORMED, "the backup is of a newer version of croupier");
    if (format != FORMAT || !read_members(root, &found))
        return error_set(error, STATUS_MALFORMED, "the manifest is damaged");
    *manifest = found;
    return STATUS_OK;
}
