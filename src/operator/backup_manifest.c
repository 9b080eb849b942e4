/* The manifest of a backup; see backup.h. */
#include <string.h>

#include <yyjson.h>

#include "base/clock.h"
#include "base/json_writer.h"
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
    json_end(&json);
    json_end(&json);
    buffer_append_char(out, '\n');
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct text text_member(yyjson_val *object, const char *name)
{
    yyjson_val *value = yyjson_obj_get(object, name);
    return (struct text){yyjson_get_str(value), yyjson_get_len(value)};
}

static bool read_part(yyjson_val *file, struct backup_manifest *manifest)
{
    struct text name = text_member(file, "name");
    yyjson_val *bytes = yyjson_obj_get(file, "bytes");
    size_t part = 0;
    while (part < BACKUP_PART_COUNT && !text_equals(name, text_of(backup_part_names[part])))
        part++;
    if (part == BACKUP_PART_COUNT || manifest->parts[part].there || !yyjson_is_uint(bytes))
        return false;
    manifest->parts[part].there = true;
    manifest->parts[part].print.bytes = yyjson_get_uint(bytes);
    return clock_parse_rfc3339(text_member(file, "as_of"), &manifest->parts[part].as_of_ms) ==
               STATUS_OK &&
           hex_read(text_member(file, "sha256"), manifest->parts[part].print.sha256, DIGEST_SIZE);
}

static bool read_members(yyjson_val *root, struct backup_manifest *manifest)
{
    struct text program = text_member(root, "program");
    yyjson_val *schema = yyjson_obj_get(root, "schema");
    yyjson_val *files = yyjson_obj_get(root, "files");
    yyjson_val *file;
    size_t index;
    size_t count;
    if (program.size == 0 || program.size >= sizeof manifest->program || !text_is_plain(program) ||
        !yyjson_is_uint(schema) || yyjson_get_uint(schema) > UINT32_MAX || !yyjson_is_arr(files) ||
        clock_parse_rfc3339(text_member(root, "made_at"), &manifest->made_ms) != STATUS_OK)
        return false;
    memcpy(manifest->program, program.at, program.size);
    manifest->schema = (uint32_t)yyjson_get_uint(schema);
    yyjson_arr_foreach(files, index, count, file)
    {
        if (!read_part(file, manifest))
            return false;
    }
    return manifest->parts[BACKUP_PLATFORM].there;
}

enum status backup_manifest_read(struct text text, struct backup_manifest *manifest,
                                 struct error *error)
{
    struct backup_manifest found = {.made_ms = 0};
    yyjson_doc *document = yyjson_read(text.at, text.size, 0);
    yyjson_val *root = yyjson_doc_get_root(document);
    yyjson_val *format = yyjson_obj_get(root, "format");
    enum status status = STATUS_OK;
    if (yyjson_is_uint(format) && yyjson_get_uint(format) > FORMAT)
        status = error_set(error, STATUS_MALFORMED, "the backup is of a newer version of croupier");
    else if (!yyjson_is_uint(format) || yyjson_get_uint(format) != FORMAT ||
             !read_members(root, &found))
        status = error_set(error, STATUS_MALFORMED, "the manifest is damaged");
    yyjson_doc_free(document);
    if (status == STATUS_OK)
        *manifest = found;
    return status;
}
