#pragma once

#include "config/config.h"

/*
 * The table of settings and the file that sets them, as config.c uses them. Private to this folder.
 */

/* The prefixes of stores on this machine; the rest is a path. */
#define SCHEME_SQLITE "sqlite:"
#define SCHEME_EMBEDDED "embedded:"

struct setting {
    struct setting_description about;
    size_t offset; /* of the field in struct config */
    /* Reads `value` into `field` or says what is wrong with it. Texts are not copied: `value` lives
     * as long as the snapshot. */
    enum status (*read)(const struct setting *setting, char *value, void *field,
                        struct error *error);
    uint32_t least, most; /* of a number */
    unsigned rules;
};

enum setting_rule {
    RELOADABLE = 1,
    IS_LIST = 2,   /* may go on over several lines of the file */
    STAYS_SET = 4, /* reloadable, but a restart has to set it, or to make it empty again */
    IS_FILE = 8,   /* a path, or credential:NAME */
};

extern const struct setting settings[];
extern const size_t setting_count;

/* The index of a setting, or setting_count. Names are exact. */
size_t setting_find(struct text section, struct text key);
bool setting_section_exists(struct text section);

/* ---- problems -------------------------------------------------------------------------------- */

/* So many problems are kept as lines; the others are only counted. */
#define PROBLEMS_SHOWN_MAX 20

/* All that is wrong with a configuration, in the order in which it is found. */
struct problems {
    struct buffer lines; /* one each, at most PROBLEMS_SHOWN_MAX */
    unsigned count;
    enum status status; /* of the first; OK: there is none */
};

/* `origin`: where it was written ("croupier.conf:12: [odds] timeout_ms"). */
void problems_add(struct problems *problems, enum status status, const char *origin,
                  const struct error *error);

/* ---- the file -------------------------------------------------------------------------------- */

/* Takes one value, and says what is wrong with it. `origin`: see problems_add. */
typedef void config_taker(void *context, size_t setting, struct text value, const char *origin);

/* Reads an INI file and hands every setting in it to `take`, in order. Unknown settings and
 * unreadable files are problems. */
void config_file_read(const char *path, config_taker *take, void *context,
                      struct problems *problems);
