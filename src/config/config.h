#pragma once

#include "base/log.h"
#include "records/policy.h"

/*
 * The configuration: an immutable snapshot made from the table of settings (config/settings.c), the
 * INI file and the environment (CROUPIER_SECTION_KEY, which wins). docs/configuration.md describes
 * every row of the table; a test proves that it does.
 *
 * A snapshot is counted: config_hold / config_release, any thread. config_load reads the
 * environment: one thread at a time.
 *
 * In the file, `key = value` stands under its [section]; `#` and `;` begin a comment (also after a
 * value, when a space is before the `;`). A list may go on in following lines that begin with a
 * space.
 */

#define CONFIG_DEFAULT_PATH "/etc/croupier/croupier.conf"

struct listen_address {
    char text[64]; /* as written: "127.0.0.1:8080", "[::]:8080" */
    char host[ADDRESS_TEXT_SIZE];
    uint16_t port; /* 0: any free port (tests) */
};

struct config {
    /* [server] */
    struct listen_address listen;
    uint32_t threads; /* resolved: at least 1 */
    struct cidr_list trusted_proxies;
    char *tls_certificate; /* path of a PEM chain, or "" for plain HTTP */
    char *tls_key;
    uint32_t drain_seconds;
    uint32_t drain_idle_ms;           /* of an idle connection at the end */
    uint32_t max_connections;         /* of all threads together */
    uint32_t waiting_max;             /* polls that wait, of all threads together */
    uint32_t connections_per_address; /* this and the next two: see config_share; 0: no limit */
    uint32_t connections_per_customer;
    uint32_t waiting_per_customer;
    uint32_t header_seconds; /* from the first byte of a request to the end of its head */
    uint32_t body_seconds;   /* for the whole body */
    uint32_t write_seconds;  /* without progress while an answer is being sent */
    uint32_t idle_seconds;   /* between requests */
    /* [operator] */
    struct listen_address operator_listen;
    char *operator_hosts;           /* host names of the console, comma-separated; "": see docs */
    char *operator_tls_certificate; /* as of [server] */
    char *operator_tls_key;
    char *trusted_user_header; /* the field in which a sign-in proxy names an operator; "": none */
    struct cidr_list trusted_user_proxies;
    char *trusted_user_secret_file;
    struct text trusted_user_secret; /* which it holds; empty: there is none */
    /* [provider] */
    struct listen_address provider_listen; /* `text` is "": providers' calls are not listened for */
    char *provider_tls_certificate;        /* as of [server] */
    char *provider_tls_key;
    /* [odds] */
    char *odds_store; /* with the password of odds_password_file */
    char *odds_password_file;
    uint32_t odds_timeout_ms;
    uint32_t odds_ask_ms;
    uint32_t stale_after_s;   /* older odds are stale; 0: none are */
    uint32_t differences_mib; /* of earlier answers, to make differences from; 0: none are made */
    char *odds_prefix;
    /* [platform] */
    char *platform_store; /* with the password of platform_password_file */
    char *platform_password_file;
    uint32_t platform_timeout_ms;
    /* [casino] */
    char *secrets_key_file; /* resolved from the platform store when not set */
    uint32_t batch_max;
    uint32_t session_hours; /* for so long after a launch its provider may take stakes */
    uint32_t launch_timeout_ms;
    char *launch_ca_file; /* path of PEM certificates, or "" for the system's */
    /* [account] */
    struct rate_limit account_rate; /* of each customer */
    /* [log] */
    enum log_level log_level;
    enum log_format log_format;

    char *path; /* the file it came from, or "" */
};

/*
 * Loads `path`; NULL means CONFIG_DEFAULT_PATH if that file exists, else defaults and environment
 * alone. Every unknown section, key or unusable value is refused with file, line and reason
 * ("croupier.conf:12: [odds] timeout_ms: must be 1 to 60000, in milliseconds"), or with the name of
 * the environment variable. So is a variable that begins with CROUPIER_ and is no setting, except
 * those that docs/configuration.md names. The error has the first problem and the number of
 * others. `overrides` ("server.listen", "127.0.0.1:0", …, NULL) come last and win
 * over both; may be NULL.
 */
MUST_CHECK enum status config_load(const struct config **config, const char *path,
                                   const char *const *overrides, struct error *error);

/* The same without overrides; `problems` gets all that is wrong, one a line without a newline at
 * the end (after the twentieth: how many more). */
MUST_CHECK enum status config_load_all(const struct config **config, const char *path,
                                       struct buffer *problems);

/* What `threads = 0` means. The kernel's files are below `root`, "" but in tests. */
uint32_t config_processors(const char *root);

/* A setting that is a number, or a share of another as "25%". A share gives at least 1. */
#define CONFIG_PERCENT 0x80000000U
uint32_t config_share(uint32_t share, uint32_t whole);

const struct config *config_hold(const struct config *config);
void config_release(const struct config **config);

/* Every setting has its default: none was written anywhere. */
bool config_is_empty(const struct config *config);

/* The settings that differ and cannot change while running, comma-separated, into `out` ("" when
 * there is none). SIGHUP reports them, because they need a restart. Both of HTTPS are among them
 * when it would be turned on or off, not when it would have another certificate. Another password
 * in a password_file is a change of the store. */
void config_list_restart_needed(const struct config *before, const struct config *after,
                                struct buffer *out);

/* The file of the platform store, when it is SQLite's, and the directory of the odds store, when it
 * is LMDB's; NULL: a server has it. They live as long as the snapshot. */
const char *config_platform_file(const struct config *config);
const char *config_odds_directory(const struct config *config);

/* Does the file hold a password of a store? */
bool config_file_has_password(const struct config *config);

/* A store's URI as it may be shown: passwords in it are replaced by "***". */
void config_redact_uri(const char *uri, struct buffer *out);

/* "host:port", as settings have it: an IPv6 address in brackets. */
void config_append_address(struct buffer *out, const char *host, uint16_t port);

/* The URL by which a client on this machine finds a listener: all addresses are also the loopback
 * one. */
void config_append_url(struct buffer *out, const char *scheme, const char *host, uint16_t port);

/* The table, for the docs test and `croupier help settings`. */
struct setting_description {
    const char *section;
    const char *key;
    const char *default_text;
    const char *what; /* one line, with the unit and the range */
    bool reloadable;  /* SIGHUP changes it; else it needs a restart */
};
/* A setting's value in force, as it was written or by default; passwords in it are replaced. */
void config_append_value(const struct config *config, size_t index, struct buffer *out);
/* NULL beyond the last row. */
const struct setting_description *config_setting(size_t index);
/* The name of its environment variable: CROUPIER_ODDS_TIMEOUT_MS. */
void config_append_variable(const struct setting_description *setting, struct buffer *out);
