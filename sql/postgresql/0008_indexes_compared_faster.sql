-- As before (0006_declines_chained.sql), with hashes of records in place of hashes of their texts.
CREATE OR REPLACE FUNCTION index_has_its_table(asked oid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    of_table text;
    columns text;
    those text;
    in_table record;
    in_index record;
BEGIN
    SELECT index.indrelid::regclass::text, coalesce(pg_get_expr(index.indpred, index.indrelid), 'true'),
           (SELECT string_agg(pg_get_indexdef(asked, at, true), ', ' ORDER BY at)
            FROM generate_series(1, index.indnkeyatts) AS at)
    INTO STRICT of_table, those, columns FROM pg_index AS index WHERE index.indexrelid = asked;
    PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true),
            set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
    EXECUTE format('SELECT count(*) AS rows, sum(hash_record_extended(ROW(%s), 0)) AS sum'
                   ' FROM %s WHERE %s', columns, of_table, those) INTO STRICT in_table;
    PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'on', true),
            set_config('enable_indexonlyscan', 'on', true), set_config('enable_sort', 'off', true);
    EXECUTE format('SELECT count(*) AS rows, sum(hash_record_extended(key, 0)) AS sum FROM'
                   ' (SELECT ROW(%s) AS key FROM %s WHERE %s ORDER BY %s OFFSET 0) AS ordered',
                   columns, of_table, those, columns) INTO STRICT in_index;
    PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true),
            set_config('enable_sort', 'on', true);
    RETURN in_table IS NOT DISTINCT FROM in_index;
END $$;
