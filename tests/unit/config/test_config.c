/* config: defaults, file, environment, overrides; and every refusal with its place and reason. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "config/config.h"
#include "tests.h"

static char directory[] = "/tmp/croupier-test-config-XXXXXX";
static char path[128];

static int make_directory(void **state)
{
    for (char **variable = environ; *variable != NULL;) {
        char name[256];
        (void)snprintf(name, sizeof name, "%s", *variable);
        name[strcspn(name, "=")] = '\0';
        if (strncmp(name, "CROUPIER_", 9) == 0)
            (void)unsetenv(name);
        else
            variable++;
    }
    if (mkdtemp(directory) == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/c.conf", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)unlink(path);
    return rmdir(directory);
}

static void write_bytes(const char *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static const struct config *load_text(const char *text)
{
    struct error error = {0};
    const struct config *config = NULL;
    write_bytes(text, strlen(text));
    if (config_load(&config, path, NULL, &error) != STATUS_OK)
        fail_msg("refused: %s", error.text);
    return config;
}

/* The refusal of a file, without the path before the line number. */
static void expect_refusal(const char *text, const char *expected)
{
    struct error error = {0};
    const struct config *config = NULL;
    write_bytes(text, strlen(text));
    assert_int_not_equal(config_load(&config, path, NULL, &error), STATUS_OK);
    assert_null(config);
    assert_true(strncmp(error.text, path, strlen(path)) == 0);
    if (strstr(error.text + strlen(path), expected) == NULL)
        fail_msg("'%s' does not say '%s'", error.text, expected);
}

TEST(without_a_file_everything_has_its_default)
{
    const struct config *config = load_text("");
    assert_string_equal(config->listen.text, "127.0.0.1:8080");
    assert_string_equal(config->listen.host, "127.0.0.1");
    assert_int_equal(config->listen.port, 8080);
    assert_true(config->threads >= 1);
    assert_int_equal(config->trusted_proxies.count, 0);
    assert_string_equal(config->tls_certificate, "");
    assert_int_equal(config->drain_seconds, 10);
    assert_int_equal(config->drain_idle_ms, 1000);
    assert_true(config->max_connections > 10000);
    assert_string_equal(config->operator_listen.text, "127.0.0.1:9090");
    assert_string_equal(config->odds_store, "embedded:/var/lib/croupier/odds");
    assert_int_equal(config->odds_timeout_ms, 250);
    assert_string_equal(config->odds_prefix, "");
    assert_string_equal(config->platform_store, "sqlite:/var/lib/croupier/platform.db");
    assert_int_equal(config->platform_timeout_ms, 1000);
    assert_string_equal(config->secrets_key_file, "/var/lib/croupier/secrets.key");
    assert_int_equal(config->batch_max, 256);
    assert_int_equal(config->log_level, LOG_INFO);
    assert_int_equal(config->log_format, LOG_FORMAT_TEXT);
    assert_string_equal(config->path, path);
    config_release(&config);
    assert_null(config);
}

TEST(the_file_sets_what_it_names)
{
    const struct config *config = load_text(
        "\xEF\xBB\xBF# a comment\n; another\r\n"
        "[server]\n"
        "listen = [::1]:0\n"
        "  threads=3   ; indented keys are fine\n"
        "\n"
        "[log]\nlevel: debug\nformat = json\n"
        "[odds]\nstore = embedded:rel/dir\nprefix = shop1:\n"
        "[platform]\nstore = sqlite:data/platform.db\n"
        "[server]\nidle_seconds = 5"); /* a section may come back; no newline at the end */
    assert_string_equal(config->listen.host, "::1");
    assert_string_equal(config->listen.text, "[::1]:0");
    assert_int_equal(config->listen.port, 0);
    assert_int_equal(config->threads, 3);
    assert_int_equal(config->idle_seconds, 5);
    assert_int_equal(config->log_level, LOG_DEBUG);
    assert_int_equal(config->log_format, LOG_FORMAT_JSON);
    assert_string_equal(config->odds_prefix, "shop1:");
    assert_string_equal(config->odds_store, "embedded:rel/dir");
    assert_string_equal(config->secrets_key_file, "data/secrets.key");
    config_release(&config);
}

TEST(a_comment_after_a_value_takes_a_space_before_it)
{
    const struct config *config = load_text("[odds]\n"
                                            "store = embedded:/a;b ; c\t;d\n"
                                            "prefix = ;p\n"
                                            "[log] ; = of no account\n"
                                            "level = error\t; = :\n");
    assert_string_equal(config->odds_store, "embedded:/a;b");
    assert_string_equal(config->odds_prefix, ";p");
    assert_int_equal(config->log_level, LOG_ERROR);
    config_release(&config);
    expect_refusal("[log]\nlevel ; = info\n", ":2: this is neither");
    expect_refusal("[log ; ]\n", ":1: there is no section [log ; ]");
}

TEST(lists_hold_addresses_and_blocks)
{
    const struct config *config = load_text("[server]\n"
                                            "trusted_proxies = 10.0.0.0/8,192.0.2.7\n"
                                            "    # the office\n"
                                            "    2001:db8::/32 ; the other office\n"
                                            "\t203.0.113.9,\n"
                                            "threads = 1\n");
    assert_int_equal(config->trusted_proxies.count, 4);
    struct address inside;
    assert_int_equal(address_parse(TEXT("2001:db8::17"), &inside), STATUS_OK);
    assert_true(cidr_contains(&config->trusted_proxies.blocks[2], &inside));
    assert_int_equal(address_parse(TEXT("203.0.113.9"), &inside), STATUS_OK);
    assert_true(cidr_contains(&config->trusted_proxies.blocks[3], &inside));
    assert_false(cidr_contains(&config->trusted_proxies.blocks[1], &inside));
    assert_int_equal(config->threads, 1);
    config_release(&config);
}

TEST(the_environment_wins_over_the_file_and_overrides_over_both)
{
    struct error error = {0};
    const struct config *config = NULL;
    const char *text =
        "[server]\nlisten = 127.0.0.1:1\ndrain_seconds = 1\n[odds]\ntimeout_ms = 1\n";
    write_bytes(text, strlen(text));
    assert_int_equal(setenv("CROUPIER_SERVER_LISTEN", "127.0.0.1:2", 1), 0);
    assert_int_equal(setenv("CROUPIER_ODDS_TIMEOUT_MS", " 2 ", 1), 0);
    const char *overrides[] = {"server.listen", "127.0.0.1:3", NULL};
    assert_int_equal(config_load(&config, path, overrides, &error), STATUS_OK);
    assert_int_equal(config->listen.port, 3);
    assert_int_equal(config->odds_timeout_ms, 2);
    assert_int_equal(config->drain_seconds, 1);
    config_release(&config);
    (void)unsetenv("CROUPIER_SERVER_LISTEN");
    (void)unsetenv("CROUPIER_ODDS_TIMEOUT_MS");
}

static void expect_variable_refused(const char *name, const char *value, const char *expected)
{
    struct error error = {0};
    const struct config *config = NULL;
    write_bytes("", 0);
    assert_int_equal(setenv(name, value, 1), 0);
    assert_int_equal(config_load(&config, path, NULL, &error), STATUS_INVALID);
    assert_null(config);
    assert_non_null(strstr(error.text, name));
    if (strstr(error.text, expected) == NULL)
        fail_msg("'%s' does not say '%s'", error.text, expected);
    (void)unsetenv(name);
}

TEST(a_variable_that_means_no_setting_is_refused_by_name)
{
    expect_variable_refused("CROUPIER_ODDS_TIMEOUT", "1",
                            "no such setting; did you mean CROUPIER_ODDS_TIMEOUT_MS?");
    expect_variable_refused("CROUPIER_SERVERS_LISTEN", "x", "did you mean CROUPIER_SERVER_LISTEN?");
    expect_variable_refused("CROUPIER_SEVER_LISTNE", "x", "did you mean CROUPIER_SERVER_LISTEN?");
    expect_variable_refused("CROUPIER_SERVER_", "1", "no such setting; ");
    expect_variable_refused("CROUPIER_server_listen", "127.0.0.1:1", "no such setting; ");
    expect_variable_refused("CROUPIER_PORTS", "1", "`croupier help settings` lists them all");
    expect_variable_refused("CROUPIER_", "1", "`croupier help settings` lists them all");
    expect_variable_refused("CROUPIER_ODDS_TIMEOUT_MS", "soon", "from 1 to 60000");
    expect_variable_refused("CROUPIER_SERVER_LISTEN", "", "ADDRESS:PORT");
}

TEST(variables_that_other_programs_have_are_passed_over)
{
    const char *names[] = {"CROUPIER_BIN",  "CROUPIER_PATIENCE",     "CROUPIER_TEST_CLOCK",
                           "CROUPIER_PORT", "CROUPIER_SERVICE_HOST", "CROUPIER_PORT_8080_TCP"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(setenv(names[i], "x", 1), 0);
    const struct config *config = load_text("");
    assert_true(config_is_empty(config));
    config_release(&config);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unsetenv(names[i]);
}

static void expect_problems(const char *text, const char *expected)
{
    const struct config *config = NULL;
    struct buffer problems = {0};
    write_bytes(text, strlen(text));
    assert_int_equal(config_load_all(&config, path, &problems), STATUS_INVALID);
    assert_null(config);
    struct buffer shown = {0}; /* "PATH:3: …" as ":3: …" */
    struct text rest = buffer_text(&problems);
    while (rest.at != NULL) {
        struct text line = text_cut(&rest, '\n');
        struct text start = text_of(path);
        size_t cut = text_starts_with(line, start) ? start.size : 0;
        buffer_append(&shown, line.at + cut, line.size - cut);
        buffer_append_char(&shown, '\n');
    }
    assert_string_equal(buffer_string(&shown), expected);
    buffer_free(&shown);
    buffer_free(&problems);
}

TEST(all_that_is_wrong_is_seen_at_once)
{
    assert_int_equal(setenv("CROUPIER_LOG_LEVLE", "info", 1), 0);
    expect_problems("[server]\n"
                    "threads = many\n"
                    "listen 8080\n"
                    "    goes on with what was refused\n"
                    "trusted_proxies = 10.0.0.0/8\n"
                    "    proxy.example\n"
                    "[odd]\n"
                    "store = of the unknown section\n"
                    "    and its next line\n"
                    "[log]\n"
                    "level = loud\n",
                    ":2: [server] threads: must be a whole number from 0 to 256, and is 'many' "
                    "(serving threads, 0 to 256; 0: one a processor that it may use, at most 64)\n"
                    ":3: this is neither [section] nor key = value nor a comment\n"
                    ":5: [server] trusted_proxies: item 2: 'proxy.example' is not an address or "
                    "CIDR block\n"
                    ":7: there is no section [odd]; sections are server, operator, provider, odds, "
                    "platform, casino, account, log\n"
                    ":11: [log] level: must be error, warning, info or debug, and is 'loud'\n"
                    "environment variable CROUPIER_LOG_LEVLE: there is no such setting; did you "
                    "mean CROUPIER_LOG_LEVEL?\n");
    (void)unsetenv("CROUPIER_LOG_LEVLE");
}

TEST(settings_that_do_not_go_together_are_all_named)
{
    expect_problems("[server]\nlisten = 127.0.0.1:9090\ntls_key = k.pem\n"
                    "[operator]\ntls_certificate = c.pem\n",
                    ":3: [server] tls_key: needs tls_certificate as well\n"
                    ":5: [operator] tls_certificate: needs tls_key as well\n"
                    ":2: [server] listen: the public API and the metrics cannot both have "
                    "127.0.0.1:9090\n");
}

TEST(after_twenty_the_rest_is_counted)
{
    struct buffer text = {0};
    struct error error = {0};
    const struct config *config = NULL;
    for (unsigned i = 0; i < 1000; i++)
        buffer_append_string(&text, "nonsense\n");
    write_bytes(text.data, text.size);
    struct buffer problems = {0};
    assert_int_equal(config_load_all(&config, path, &problems), STATUS_INVALID);
    size_t lines = 1;
    for (size_t i = 0; i < problems.size; i++)
        lines += problems.data[i] == '\n' ? 1 : 0;
    assert_int_equal(lines, 21);
    assert_non_null(strstr(buffer_string(&problems), "\nand 980 more"));
    assert_int_equal(config_load(&config, path, NULL, &error), STATUS_INVALID);
    assert_non_null(strstr(error.text, "comment (and 999 more; `croupier check` lists them)"));
    buffer_free(&problems);
    buffer_free(&text);
}

TEST(what_is_no_configuration_is_refused_with_its_line)
{
    expect_refusal("[server]\n\nlisten 8080\n", ":3: this is neither");
    expect_refusal("[server\nthreads = 1\n", ":1: this is neither");
    expect_refusal("threads = 1\n", ":1: 'threads' stands before the first [section]");
    expect_refusal("[server]\nthreads = 1\n[sever]\n", ":3: there is no section [sever]");
    expect_refusal("[Server]\n", ":1: there is no section [Server]");
    expect_refusal("[]\n", ":1: there is no section []");
    expect_refusal(
        "[odds]\ntimeout = 5\n",
        ":2: there is no setting 'timeout' in [odds]; there are store, timeout_ms, ask_ms, "
        "prefix");
    expect_refusal("[odds]\ntimeout_ms = 5\n[log]\nlevel = info\n[odds]\ntimeout_ms = 5\n",
                   ":6: [odds] timeout_ms is set twice, first in line 2");
    expect_refusal("[odds]\ntimeout_ms = 5\n  6\n", ":3: this line begins with a space");
    expect_refusal("[log]\nlevel = in\x01"
                   "fo\n",
                   ":2: there is a control character");
}

TEST(nul_bytes_are_refused_and_not_read_over)
{
    struct error error = {0};
    const struct config *config = NULL;
    write_bytes("[log]\nlevel = debug\0junk\n", 25);
    assert_int_equal(config_load(&config, path, NULL, &error), STATUS_INVALID);
    assert_non_null(strstr(error.text, ":2: there is a control character"));
}

TEST(a_line_that_is_too_long_is_refused_and_not_split)
{
    struct buffer text = {0};
    buffer_append_string(&text, "[log]\nlevel = info\n[odds]\nstore = embedded:/");
    for (int i = 0; i < 5000; i++)
        buffer_append_char(&text, 'x');
    buffer_append_string(&text, "\n");
    expect_refusal(buffer_string(&text), ":4: this line is longer than ");
    buffer_free(&text);
    /* The longest comment is no exception: its end would be read as a line of its own. */
    buffer_append_char(&text, '#');
    for (int i = 0; i < 5000; i++)
        buffer_append_char(&text, 'x');
    expect_refusal(buffer_string(&text), ":1: this line is longer than ");
    buffer_free(&text);
}

TEST(a_file_that_cannot_be_read_is_refused)
{
    struct error error = {0};
    const struct config *config = NULL;
    assert_int_equal(config_load(&config, "/nonexistent/c.conf", NULL, &error), STATUS_NOT_FOUND);
    assert_non_null(strstr(error.text, "/nonexistent/c.conf: cannot be opened: No such file"));
    assert_int_equal(config_load(&config, directory, NULL, &error), STATUS_UNAVAILABLE);
    assert_non_null(strstr(error.text, "Is a directory"));
    assert_int_equal(config_load(&config, "", NULL, &error), STATUS_NOT_FOUND);
    assert_int_equal(config_load(&config, "/dev/zero", NULL, &error), STATUS_INVALID);
    assert_non_null(strstr(error.text, "larger than 1 MiB"));
    assert_null(config);
}

TEST(listen_addresses_are_refused_with_an_example)
{
    const char *wrong[] = {
        "8080",
        "127.0.0.1",
        "127.0.0.1:",
        ":8080",
        "*:8080",
        "localhost:80",
        "::1",
        "::1:8080",
        "[::1]",
        "[::1]8080",
        "[::1]:",
        "[127.0.0.1]:80",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "127.0.0.1:080000",
        "127.0.0.1:8 0",
        "127.0.0.256:80",
        "[::1:80",
        "[]:80",
        "http://127.0.0.1:80",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "[server]\nlisten = %s\n", wrong[i]);
        expect_refusal(text, ":2: [server] listen: ");
    }
    expect_refusal("[server]\nlisten = 127.0.0.1\n", "has no port; it must be ADDRESS:PORT");
    expect_refusal("[server]\nlisten = ::1:80\n", "an IPv6 address stands in brackets");
    expect_refusal("[server]\nlisten = localhost:80\n", "'localhost' is not an IP address");
    expect_refusal(
        "[server]\nlisten = 127.0.0.1:9090\n",
        ":2: [server] listen: the public API and the metrics cannot both have 127.0.0.1:9090");
}

TEST(numbers_are_refused_with_unit_and_range)
{
    expect_refusal("[odds]\ntimeout_ms = 0\n",
                   ":2: [odds] timeout_ms: must be a whole number from 1 to 60000, and is '0'");
    expect_refusal("[odds]\ntimeout_ms = 250ms\n", "milliseconds");
    expect_refusal("[odds]\ntimeout_ms =\n", "from 1 to 60000");
    expect_refusal("[odds]\ntimeout_ms = -1\n", "from 1 to 60000");
    expect_refusal("[odds]\ntimeout_ms = 99999999999999999999\n", "from 1 to 60000");
    expect_refusal("[platform]\ntimeout_ms = 60001\n", "from 1 to 60000");
    expect_refusal("[odds]\nask_ms = 9\n", "from 10 to 10000");
    expect_refusal("[odds]\nask_ms = 10001\n", "from 10 to 10000");
    expect_refusal("[odds]\nask_ms = 0.1s\n", "from 10 to 10000");
    expect_refusal("[server]\nthreads = 257\n", "from 0 to 256");
    expect_refusal("[server]\ndrain_seconds = 1.5\n", "seconds");
    expect_refusal("[server]\nmax_connections = 0\n", "from 1 to 1000000");
    const char *deadlines[] = {"header_seconds", "body_seconds", "write_seconds", "idle_seconds"};
    for (size_t i = 0; i < 4; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "[server]\n%s = 0\n", deadlines[i]);
        expect_refusal(text, "whole number from 1 to");
    }
}

TEST(lists_are_refused_with_the_item)
{
    expect_refusal("[server]\ntrusted_proxies = 10.0.0.0/8, proxy.example\n",
                   ":2: [server] trusted_proxies: item 2: 'proxy.example' is not an address");
    expect_refusal("[server]\ntrusted_proxies = 10.0.0.1/8\n", "did you mean 10.0.0.0/8?");
    expect_refusal("[server]\ntrusted_proxies = 10.0.0.0/8, 0.0.0.0/0\n",
                   "item 2: '0.0.0.0/0' would trust every client");
    expect_refusal("[server]\ntrusted_proxies = ::/0\n", "every client");
    expect_refusal("[server]\ntrusted_proxies = ::ffff:0.0.0.0/96\n", "every client");
    expect_refusal("[server]\ntrusted_proxies = 10.0.0.0/33\n",
                   "the prefix length must be 0 to 32");
}

TEST(odds_may_be_in_redis)
{
    const char *redis[] = {"redis://localhost:6379/0", "unix:/run/redis.sock",
                           "redis+sentinel://a,b/s/0", "rediss://host",
                           "rediss+sentinel://a,b/s/0"};
    for (size_t i = 0; i < 5; i++) {
        char text[128];
        const struct config *config = NULL;
        struct error error = {0};
        int size = snprintf(text, sizeof text, "[odds]\nstore = %s\n", redis[i]);
        write_bytes(text, (size_t)size);
        assert_int_equal(config_load(&config, path, NULL, &error), STATUS_OK);
        assert_string_equal(config->odds_store, redis[i]);
        assert_null(config_odds_directory(config));
        config_release(&config);
    }
    expect_refusal("[odds]\nstore = redis://\n", "must be embedded:DIR");
    expect_refusal("[odds]\nstore = redis:host\n", "must be embedded:DIR");
}

TEST(stores_on_this_machine_have_a_path)
{
    const struct config *config = NULL;
    const char *const here[] = {"odds.store", "embedded:/srv/odds", "platform.store", "sqlite:p.db",
                                NULL};
    const char *const server[] = {"platform.store", "postgresql://localhost/croupier", NULL};
    write_bytes("", 0);
    assert_int_equal(config_load(&config, path, here, NULL), STATUS_OK);
    assert_string_equal(config_odds_directory(config), "/srv/odds");
    assert_string_equal(config_platform_file(config), "p.db");
    assert_string_equal(config->secrets_key_file, "secrets.key"); /* beside the file */
    config_release(&config);
    assert_int_equal(config_load(&config, path, server, NULL), STATUS_OK);
    assert_null(config_platform_file(config));
    assert_string_equal(config->secrets_key_file, "/var/lib/croupier/secrets.key");
    config_release(&config);
}

TEST(stores_of_unknown_kinds_are_refused)
{
    expect_refusal("[odds]\nstore = lmdb:/x\n", "must be embedded:DIR");
    expect_refusal("[odds]\nstore = embedded:\n", "must be embedded:DIR");
    expect_refusal("[odds]\nstore = \"embedded:/x\"\n", "must be embedded:DIR");
    expect_refusal("[platform]\nstore = /var/lib/p.db\n", "must be sqlite:FILE");
    expect_refusal("[platform]\nstore = sqlite::memory:\n", "must be a file");
}

TEST(no_refusal_shows_a_password)
{
    const char *texts[] = {"[platform]\nstore = postgresql:u:hunter2@h/d\n",
                           "[odds]\nstore = redis+tls://:hunter2@h/0\n",
                           "[odds]\nstore = valkey://:hunter2@h/0\n"};
    for (size_t i = 0; i < 3; i++) {
        struct error error = {0};
        const struct config *config = NULL;
        write_bytes(texts[i], strlen(texts[i]));
        assert_int_equal(config_load(&config, path, NULL, &error), STATUS_INVALID);
        assert_null(strstr(error.text, "hunter2"));
    }
}

TEST(the_rest_is_refused_too)
{
    expect_refusal("[log]\nlevel = loud\n", "must be error, warning, info or debug, and is 'loud'");
    expect_refusal("[log]\nformat = xml\n", "must be text or json, and is 'xml'");
    expect_refusal("[account]\nrate = 300\n", "must be REQUESTS/SECONDS, as in 300/60, or off");
    expect_refusal("[account]\nrate = 0/60\n", "and is '0/60'");
    expect_refusal("[account]\nrate = 1/86401\n", "and is '1/86401'");
    expect_refusal("[odds]\nprefix = a b\n", "without spaces");
    expect_refusal("[server]\ntls_certificate = /c.pem\n",
                   ":2: [server] tls_certificate: needs tls_key");
    expect_refusal("[server]\n\ntls_key = /k.pem\n", ":3: [server] tls_key: needs tls_certificate");
    expect_refusal("[server]\ntls_key = \"/k.pem\"\n", "without quotes");
}

TEST(a_broken_line_is_refused_though_the_environment_wins)
{
    assert_int_equal(setenv("CROUPIER_ODDS_TIMEOUT_MS", "5", 1), 0);
    expect_refusal("[odds]\ntimeout_ms = soon\n", ":2: [odds] timeout_ms:");
    (void)unsetenv("CROUPIER_ODDS_TIMEOUT_MS");
}

TEST(an_override_is_refused_by_its_name)
{
    struct error error = {0};
    const struct config *config = NULL;
    const char *overrides[] = {"server.listen", "nowhere", NULL};
    write_bytes("", 0);
    assert_int_equal(config_load(&config, path, overrides, &error), STATUS_INVALID);
    assert_true(strncmp(error.text, "server.listen: ", 15) == 0);
}

TEST(what_needs_a_restart_is_listed)
{
    const struct config *before = load_text("[log]\nlevel = info\n");
    const struct config *same = load_text("[log]\nlevel = debug\n[server]\nidle_seconds = 9\n");
    const struct config *after =
        load_text("[server]\nlisten = 127.0.0.1:1\n[odds]\ntimeout_ms = 1\n"
                  "[platform]\nstore = sqlite:/x/y.db\n");
    struct buffer out = {0};
    config_list_restart_needed(before, same, &out);
    assert_int_equal(out.size, 0);
    config_list_restart_needed(before, after, &out);
    assert_string_equal(buffer_string(&out), "server.listen, odds.timeout_ms, platform.store, "
                                             "casino.secrets_key_file");
    buffer_free(&out);
    const struct config *held = config_hold(before);
    config_release(&before);
    assert_int_equal(held->log_level, LOG_INFO);
    config_release(&held);
    config_release(&same);
    config_release(&after);
}

TEST(setting_a_certificate_or_none_needs_a_restart_and_another_one_does_not)
{
    const struct config *plain = load_text("");
    const struct config *secure = load_text("[server]\ntls_certificate = a.crt\ntls_key = a.key\n");
    const struct config *other = load_text("[server]\ntls_certificate = b.crt\ntls_key = b.key\n");
    struct buffer out = {0};
    config_list_restart_needed(secure, other, &out);
    assert_int_equal(out.size, 0);
    config_list_restart_needed(plain, secure, &out);
    assert_string_equal(buffer_string(&out), "server.tls_certificate, server.tls_key");
    buffer_clear(&out);
    config_list_restart_needed(secure, plain, &out);
    assert_string_equal(buffer_string(&out), "server.tls_certificate, server.tls_key");
    buffer_free(&out);
    config_release(&plain);
    config_release(&secure);
    config_release(&other);
}

TEST(passwords_in_uris_are_hidden)
{
    static const char *const pairs[][2] = {
        {"sqlite:/a@b/c.db", "sqlite:/a@b/c.db"},
        {"redis://host:6379/0", "redis://host:6379/0"},
        {"redis://user:pa@ss:/?w@host/0", "redis://user:***@host/0"},
        {"redis://:secret@host", "redis://:***@host"},
        {"postgresql://user@host/db", "postgresql://user@host/db"},
        {"postgresql://h/d?user=u&password=x&a=b", "postgresql://h/d?user=u&password=***&a=b"},
        {"postgresql://h/d?sslpassword=x", "postgresql://h/d?sslpassword=***"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct buffer out = {0};
        config_redact_uri(pairs[i][0], &out);
        assert_string_equal(buffer_string(&out), pairs[i][1]);
        buffer_free(&out);
    }
}

TEST(every_setting_has_a_variable_of_its_own)
{
    struct buffer out = {0};
    config_append_variable(config_setting(0), &out);
    assert_string_equal(buffer_string(&out), "CROUPIER_SERVER_LISTEN");
    buffer_free(&out);
    size_t count = 0;
    while (config_setting(count) != NULL)
        count++;
    assert_null(config_setting(count + 1));
    assert_true(count > 15);
}

/* ---- passwords in files ---------------------------------------------------------------------- */

static char password_path[140];

static int remove_password(void **state)
{
    return unlink(password_path);
}

static void write_password(const char *password)
{
    (void)snprintf(password_path, sizeof password_path, "%s/password", directory);
    FILE *file = fopen(password_path, "we");
    assert_non_null(file);
    assert_int_equal(fputs(password, file) >= 0 && fclose(file) == 0, true);
    assert_int_equal(chmod(password_path, 0600), 0);
}

static char *with_password_file(const char *section, const char *store)
{
    static char text[512];
    (void)snprintf(text, sizeof text, "[%s]\nstore = %s\npassword_file = %s\n", section, store,
                   password_path);
    return text;
}

TEST_WITH(a_password_comes_from_a_file_and_is_never_shown, NULL, remove_password)
{
#define HUSH "%68%75%73%68%40%3A%C3%BC"
    static const char *const cases[][3] = {
        {"odds", "redis://cache:6379/2", "redis://:" HUSH "@cache:6379/2"},
        {"odds", "rediss://croupier@cache?tls_ca=/a", "rediss://croupier:" HUSH "@cache?tls_ca=/a"},
        {"odds", "redis+sentinel://u@s1,s2/name/0", "redis+sentinel://u:" HUSH "@s1,s2/name/0"},
        {"odds", "unix:///run/redis.sock", "unix://:" HUSH "@/run/redis.sock"},
        {"platform", "postgresql://croupier@db/croupier?sslmode=verify-full",
         "postgresql://croupier:" HUSH "@db/croupier?sslmode=verify-full"},
        {"platform", "postgresql:///d?host=/run/postgresql",
         "postgresql://:" HUSH "@/d?host=/run/postgresql"},
    };
    write_password("hush@:\xC3\xBC\r\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct config *config = load_text(with_password_file(cases[i][0], cases[i][1]));
        bool odds = strcmp(cases[i][0], "odds") == 0;
        assert_string_equal(odds ? config->odds_store : config->platform_store, cases[i][2]);
        struct buffer shown = {0};
        for (size_t j = 0; config_setting(j) != NULL; j++)
            config_append_value(config, j, &shown);
        assert_non_null(strstr(buffer_string(&shown), cases[i][1])); /* as it was written */
        assert_null(strstr(buffer_string(&shown), "%68"));
        buffer_free(&shown);
        assert_false(config_file_has_password(config));
        config_release(&config);
    }
}

TEST_WITH(a_password_that_changed_in_its_file_needs_a_restart_of_the_store, NULL, remove_password)
{
    static const char *const stores[][2] = {{"odds", "redis://u@cache"},
                                            {"platform", "postgresql://u@db/d"}};
    for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
        struct buffer out = {0};
        const char *text = with_password_file(stores[i][0], stores[i][1]);
        write_password("before\n");
        const struct config *before = load_text(text);
        const struct config *same = load_text(text);
        write_password("after\n");
        const struct config *after = load_text(text);
        config_list_restart_needed(before, same, &out);
        assert_int_equal(out.size, 0);
        config_list_restart_needed(before, after, &out);
        assert_string_equal(buffer_string(&out), i == 0 ? "odds.store" : "platform.store");
        buffer_free(&out);
        config_release(&before);
        config_release(&same);
        config_release(&after);
    }
}

TEST_WITH(a_password_file_is_refused_with_its_reason, NULL, remove_password)
{
    static const char uri[] = "redis://cache";
    char long_line[1040];
    write_password("hush\n");
    expect_refusal(with_password_file("odds", "redis://u:other@cache"),
                   ":3: [odds] password_file: the address in `store` has a password as well");
    expect_refusal(with_password_file("platform", "postgresql://h/d?password=other"),
                   "has a password as well");
    expect_refusal(with_password_file("odds", "unix:/run/redis.sock"), "unix:///PATH");
    expect_refusal(with_password_file("platform", "sqlite:platform.db"),
                   "is for a store that is a server");
    memset(long_line, 'x', sizeof long_line - 1);
    long_line[sizeof long_line - 1] = '\0';
    const char *const no_line[] = {"", "\n", "two\nlines\n", "\x1B", long_line};
    for (size_t i = 0; i < sizeof no_line / sizeof no_line[0]; i++) {
        write_password(no_line[i]);
        expect_refusal(with_password_file("odds", uri), "is not one line of 1 to 1024 bytes");
    }
    write_password("hush\n");
    assert_int_equal(chmod(password_path, 0644), 0);
    expect_refusal(with_password_file("odds", uri), "others may use it");
    assert_int_equal(unlink(password_path), 0);
    expect_refusal(with_password_file("odds", uri), "password: cannot be read by user");
    write_password("");
}

TEST(a_credential_is_where_systemd_puts_it)
{
    static const char text[] = "[server]\ntls_key = credential:tls.key\ntls_certificate = /c\n"
                               "[casino]\nsecrets_key_file = credential:secrets.key\n"
                               "[odds]\nprefix = credential:\n";
    const struct config *config = load_text(text);
    assert_string_equal(config->secrets_key_file, "/run/credentials/croupier.service/secrets.key");
    assert_string_equal(config->odds_prefix, "credential:"); /* no file */
    config_release(&config);
    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", "/run/credentials/other.service", 1), 0);
    config = load_text(text);
    assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    assert_string_equal(config->tls_key, "/run/credentials/other.service/tls.key");
    assert_string_equal(config->tls_certificate, "/c");
    config_release(&config);
}

TESTS_WITH(make_directory, remove_directory);
