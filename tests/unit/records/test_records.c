/* records: what each may hold, its table of columns, and rows that hold anything at all. */
#include "records/records.h"
#include "tests.h"

TEST(a_list_of_blocks_is_written_and_read_back)
{
    struct cidr blocks[4];
    struct cidr found[4];
    size_t count = 9;
    struct buffer text = {0};
    const char *wanted = "192.0.2.0/24 0.0.0.0/0 2001:db8::/32 ::/0";
    struct text rest = text_of(wanted);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(cidr_parse(text_cut(&rest, ' '), &blocks[i], NULL), STATUS_OK);
    cidr_list_append(&text, blocks, 4);
    assert_string_equal(buffer_string(&text), wanted);
    assert_true(cidr_list_read(buffer_text(&text), found, 4, &count));
    assert_int_equal(count, 4);
    assert_memory_equal(found, blocks, sizeof blocks);
    assert_true(cidr_list_read(TEXT(""), found, 4, &count));
    assert_int_equal(count, 0);
    buffer_free(&text);
}

TEST(what_is_no_list_of_blocks_is_not_read)
{
    const char *wrong[] = {" ",
                           "192.0.2.0/24 ",
                           " 192.0.2.0/24",
                           "192.0.2.0/24  10.0.0.0/8",
                           "192.0.2.0/24,10.0.0.0/8",
                           "192.0.2.1/24",
                           "192.0.2.0/33",
                           "nowhere"};
    struct cidr found[4];
    size_t count = 9;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(cidr_list_read(text_of(wrong[i]), found, 4, &count));
    assert_false(cidr_list_read(TEXT("1.0.0.0/8 2.0.0.0/8 3.0.0.0/8"), found, 2, &count));
    assert_int_equal(count, 9);
}

TEST(a_rate_has_bounds_at_both_ends)
{
    assert_true(rate_limit_is_sound(&(struct rate_limit){false, 0, 0}));
    assert_true(rate_limit_is_sound(&(struct rate_limit){true, 1, 1}));
    assert_true(rate_limit_is_sound(&(struct rate_limit){true, 1000000000, 86400}));
    assert_false(rate_limit_is_sound(&(struct rate_limit){true, 0, 1}));
    assert_false(rate_limit_is_sound(&(struct rate_limit){true, 1, 0}));
    assert_false(rate_limit_is_sound(&(struct rate_limit){true, 1000000001, 1}));
    assert_false(rate_limit_is_sound(&(struct rate_limit){true, 1, 86401}));
}

TEST(ids_have_their_kind_and_plain_characters)
{
    struct key_record record = {.prefix = "crk_abcd"};
    const char *wrong[] = {"", "key_", "cus_1", "key_a b", "key_a-b", "KEY_1"};
    strcpy(record.customer_id, "cus_1");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        strcpy(record.id, wrong[i]);
        assert_int_equal(key_table.check(&record, NULL), STATUS_INVALID);
    }
    strcpy(record.id, "key_0123456789abcdefXYZ"); /* as long as there is room for */
    assert_int_equal(key_table.check(&record, NULL), STATUS_OK);
    memset(record.id + 4, 'a', sizeof record.id - 4); /* no NUL */
    assert_int_equal(key_table.check(&record, NULL), STATUS_INVALID);
}

/* ---- tables ---------------------------------------------------------------------------------- */

TEST(a_new_id_is_its_kind_and_sixteen_characters)
{
    char id[KEY_ID_SIZE];
    memset(id, 'x', sizeof id);
    record_id_generate("key_", id, sizeof id);
    assert_memory_equal(id, "key_", 4);
    assert_int_equal(strlen(id), 20);
    for (size_t i = 20; i < sizeof id; i++)
        assert_int_equal(id[i], 0); /* so that ids can be compared as whole arrays */
}

TEST(all_digits_of_new_ids_occur_about_equally_often)
{
    unsigned seen[128] = {0};
    for (int i = 0; i < 10000; i++) {
        char id[CUSTOMER_ID_SIZE];
        record_id_generate("cus_", id, sizeof id);
        for (size_t at = 4; at < 20; at++)
            seen[(unsigned char)id[at]]++;
    }
    const char *digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    /* 160,000 draws of 62: 2581 expected, standard deviation 50; ten of those are allowed. With the
     * bias of a plain modulo the first eight digits would be 645 above the others. */
    for (const char *digit = digits; *digit != '\0'; digit++)
        assert_in_range(seen[(unsigned char)*digit], 2081, 3081);
}

TEST(every_table_is_whole)
{
    for (int kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_table *table = record_tables[kind];
        size_t revisions = 0;
        assert_int_equal(table->kind, kind);
        assert_in_range(table->column_count, 1, RECORD_COLUMNS_MAX);
        assert_true(table->what != NULL && table->plural != NULL && table->check != NULL);
        assert_int_equal(table->columns[0].rules, 0); /* the key */
        for (size_t i = 0; i < table->column_count; i++) {
            const struct column *column = &table->columns[i];
            assert_true(column->at + column->room <= table->size);
            revisions += column->type == &column_revision;
            for (size_t j = 0; j < i; j++)
                assert_string_not_equal(column->name, table->columns[j].name);
        }
        assert_int_equal(revisions, table->counter != NULL ? 1 : 0);
    }
}

/* Sets one column of a record that stands between guards, which must stay as they are; so must all
 * that is not the column's field, or its neighbour where it is kept in two. */
static bool set_guarded(const struct record_table *table, const struct column *column,
                        const struct column_value *value)
{
    unsigned char guard[64];
    unsigned char *room = calloc(1, table->size + 2 * sizeof guard);
    unsigned char *record = room + sizeof guard;
    memset(guard, 0xA5, sizeof guard);
    memcpy(room, guard, sizeof guard);
    memcpy(record + table->size, guard, sizeof guard);
    bool fits = column->type->set(column, record, value);
    assert_memory_equal(room, guard, sizeof guard);
    assert_memory_equal(record + table->size, guard, sizeof guard);
    for (size_t i = 0; i < column->at; i++)
        assert_int_equal(record[i], 0);
    for (size_t i = column->at + column->room + sizeof(size_t); i < table->size; i++)
        assert_int_equal(record[i], 0);
    (void)record_settle(table, record, fits); /* whatever the rest holds */
    free(room);
    return fits;
}

TEST(no_row_reaches_beyond_a_field)
{
    static char long_text[100000];
    static const int64_t numbers[] = {INT64_MIN, -1, 0, 1, 2, 256, 1LL << 32, INT64_MAX};
    memset(long_text, 'x', sizeof long_text);
    for (int kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_table *table = record_tables[kind];
        for (size_t i = 0; i < table->column_count; i++) {
            const struct column *column = &table->columns[i];
            struct column_value value = {.kind = column->type->kind, .null = true};
            (void)set_guarded(table, column, &value);
            value.null = false;
            for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
                value.integer = numbers[n];
                (void)set_guarded(table, column, &value);
            }
            for (size_t size = 0; size < sizeof long_text; size += 1 + size * tests_sample() / 64) {
                value.bytes = (struct text){long_text, size};
                bool fits = set_guarded(table, column, &value);
                bool borrows = column->type == &column_borrowed;
                if (size > column->room && !borrows && value.kind != COLUMN_INTEGER &&
                    value.kind != COLUMN_FLAG)
                    assert_false(fits);
            }
        }
    }
}

TEST(a_text_with_a_nul_or_a_control_character_does_not_fit)
{
    static const struct text wrong[] = {TEXT_INIT("a\0b"), TEXT_INIT("a\nb"), TEXT_INIT("\xff")};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct customer_record record = {0};
        const struct column_value value = {.kind = COLUMN_TEXT, .bytes = wrong[i]};
        assert_false(column_text.set(&customer_table.columns[1], &record, &value));
        assert_string_equal(record.name, "");
    }
}

TEST(a_value_read_back_is_the_field_that_it_was_made_from)
{
    struct game_record game = {.id = "g", .rtp_bps = -1, .volatility = GAME_MEDIUM, .demo = true};
    struct game_record read = {0};
    strcpy(game.features, "a\nb");
    for (size_t i = 0; i < game_table.column_count; i++) {
        struct column_value value;
        column_get(&game_table.columns[i], &game, &value);
        assert_true(game_table.columns[i].type->set(&game_table.columns[i], &read, &value));
        column_value_free(&value);
    }
    assert_memory_equal(&game, &read, sizeof game);
    assert_string_equal(read.features, "a\nb");
    assert_int_equal(read.rtp_bps, -1);
    assert_int_equal(read.volatility, GAME_MEDIUM);
}
