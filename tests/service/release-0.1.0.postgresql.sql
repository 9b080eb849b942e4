--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: ledger_accounts_fit(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.ledger_accounts_fit() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM written
        LEFT JOIN LATERAL (
            SELECT entry.balance_minor, entry.hash FROM ledger_transaction AS entry
            WHERE entry.player_number = written.player_number
            AND entry.sequence = written.sequence LIMIT 1) AS last ON true
        WHERE last.balance_minor IS DISTINCT FROM written.balance_minor
        OR last.hash IS DISTINCT FROM written.head)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'an account must be what its last entry says';
    END IF;
    RETURN NULL;
END $$;


--
-- Name: ledger_rollbacks_fit(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.ledger_rollbacks_fit() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM written
        LEFT JOIN LATERAL (
            SELECT undo.number FROM ledger_transaction AS undo
            WHERE undo.number = written.transaction_number
            AND undo.operation = 'ROLLBACK' AND undo.sequence IS NOT NULL
            AND undo.customer_number = written.customer_number
            AND undo.player_number = written.player_number
            AND undo.reference = written.target_id LIMIT 1) AS undo ON true
        LEFT JOIN LATERAL (
            SELECT target.player_number FROM ledger_transaction AS target
            WHERE target.customer_number = written.customer_number
            AND target.transaction_id = written.target_id
            AND NOT target.late LIMIT 1) AS target ON true
        WHERE undo.number IS NULL OR target.player_number IS DISTINCT FROM written.player_number)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'a rollback must be of an id of its player';
    END IF;
    RETURN NULL;
END $$;


--
-- Name: ledger_transactions_fit(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.ledger_transactions_fit() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM written
        LEFT JOIN LATERAL (
            SELECT customer.number FROM player JOIN customer ON customer.id = player.customer_id
            WHERE player.number = written.player_number LIMIT 1) AS customer ON true
        LEFT JOIN LATERAL (
            SELECT entry.balance_minor FROM ledger_transaction AS entry
            WHERE entry.player_number = written.player_number
            AND entry.sequence = written.sequence - 1 LIMIT 1) AS before ON true
        WHERE customer.number IS DISTINCT FROM written.customer_number
        OR (written.sequence = 1 AND written.balance_minor <> written.movement_minor)
        OR (written.sequence > 1 AND written.balance_minor - written.movement_minor
            IS DISTINCT FROM before.balance_minor))
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'a ledger entry must follow the one before it';
    END IF;
    RETURN NULL;
END $$;


--
-- Name: refuse_change(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = TG_ARGV[0], ERRCODE = 'restrict_violation';
END $$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: api_key; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.api_key (
    number bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    customer_id text NOT NULL COLLATE pg_catalog."C",
    label text NOT NULL COLLATE pg_catalog."C",
    prefix text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    created_ms bigint NOT NULL,
    expires_ms bigint,
    last_used_ms bigint,
    revoked_ms bigint,
    revision bigint NOT NULL,
    CONSTRAINT api_key_digest_check CHECK ((octet_length(digest) = 32)),
    CONSTRAINT api_key_expires_ms_check CHECK ((expires_ms > 0)),
    CONSTRAINT api_key_id_check CHECK (((octet_length(id) >= 5) AND (octet_length(id) <= 23))),
    CONSTRAINT api_key_label_check CHECK ((octet_length(label) <= 64)),
    CONSTRAINT api_key_last_used_ms_check CHECK ((last_used_ms > 0)),
    CONSTRAINT api_key_prefix_check CHECK ((octet_length(prefix) = 8)),
    CONSTRAINT api_key_revoked_ms_check CHECK ((revoked_ms > 0))
);


--
-- Name: api_key_number_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.api_key ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.api_key_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: currency; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.currency (
    code text NOT NULL COLLATE pg_catalog."C",
    exponent smallint NOT NULL,
    created_ms bigint NOT NULL,
    CONSTRAINT currency_code_check CHECK ((code ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT currency_exponent_check CHECK (((exponent >= 0) AND (exponent <= 4)))
);


--
-- Name: customer; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.customer (
    number bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    casino boolean NOT NULL,
    sports text NOT NULL COLLATE pg_catalog."C",
    rate_requests bigint,
    rate_window_seconds bigint,
    cidrs text NOT NULL COLLATE pg_catalog."C",
    created_ms bigint NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT customer_check CHECK (((rate_requests IS NULL) = (rate_window_seconds IS NULL))),
    CONSTRAINT customer_id_check CHECK (((octet_length(id) >= 5) AND (octet_length(id) <= 23))),
    CONSTRAINT customer_name_check CHECK (((octet_length(name) >= 1) AND (octet_length(name) <= 128))),
    CONSTRAINT customer_rate_requests_check CHECK (((rate_requests >= 1) AND (rate_requests <= 1000000000))),
    CONSTRAINT customer_rate_window_seconds_check CHECK (((rate_window_seconds >= 1) AND (rate_window_seconds <= 86400)))
);


--
-- Name: customer_games; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.customer_games (
    customer_id text NOT NULL COLLATE pg_catalog."C",
    every_game boolean NOT NULL,
    games text NOT NULL COLLATE pg_catalog."C",
    revision bigint NOT NULL,
    CONSTRAINT customer_games_check CHECK (((NOT every_game) OR (games = ''::text)))
);


--
-- Name: customer_number_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.customer ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.customer_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: game; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.game (
    id text NOT NULL COLLATE pg_catalog."C",
    provider_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    category text NOT NULL COLLATE pg_catalog."C",
    features text NOT NULL COLLATE pg_catalog."C",
    rtp_bps integer,
    volatility text COLLATE pg_catalog."C",
    thumbnail_url text COLLATE pg_catalog."C",
    demo boolean NOT NULL,
    currencies text NOT NULL COLLATE pg_catalog."C",
    languages text NOT NULL COLLATE pg_catalog."C",
    devices text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    updated_ms bigint NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT game_category_check CHECK (((octet_length(category) >= 1) AND (octet_length(category) <= 64))),
    CONSTRAINT game_id_check CHECK ((id ~ '^[a-z0-9][a-z0-9-]{0,63}$'::text)),
    CONSTRAINT game_name_check CHECK (((octet_length(name) >= 1) AND (octet_length(name) <= 128))),
    CONSTRAINT game_rtp_bps_check CHECK (((rtp_bps >= 0) AND (rtp_bps <= 10000))),
    CONSTRAINT game_thumbnail_url_check CHECK (((octet_length(thumbnail_url) >= 8) AND (octet_length(thumbnail_url) <= 1024))),
    CONSTRAINT game_volatility_check CHECK ((volatility = ANY (ARRAY['low'::text, 'medium'::text, 'high'::text])))
);


--
-- Name: games_revision; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.games_revision (
    one boolean DEFAULT true NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT games_revision_one_check CHECK (one),
    CONSTRAINT games_revision_revision_check CHECK ((revision >= 0))
);


--
-- Name: ledger_account; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.ledger_account (
    player_number bigint NOT NULL,
    balance_minor bigint NOT NULL,
    sequence bigint NOT NULL,
    head bytea NOT NULL,
    CONSTRAINT ledger_account_balance_minor_check CHECK (((balance_minor >= 0) AND (balance_minor <= '9007199254740991'::bigint))),
    CONSTRAINT ledger_account_head_check CHECK ((octet_length(head) = 32)),
    CONSTRAINT ledger_account_sequence_check CHECK ((sequence >= 1))
)
WITH (fillfactor='50');


--
-- Name: ledger_clearing; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.ledger_clearing (
    customer_number bigint NOT NULL,
    currency text NOT NULL COLLATE pg_catalog."C",
    balance_minor bigint NOT NULL,
    CONSTRAINT ledger_clearing_balance_minor_check CHECK (((balance_minor >= '-4611686018427387904'::bigint) AND (balance_minor <= 0)))
)
WITH (fillfactor='10');


--
-- Name: ledger_transaction; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.ledger_transaction (
    number bigint NOT NULL,
    customer_number bigint NOT NULL,
    player_number bigint NOT NULL,
    sequence bigint,
    amount_minor bigint NOT NULL,
    movement_minor bigint,
    balance_minor bigint,
    created_ms bigint NOT NULL,
    late boolean NOT NULL,
    transaction_id text NOT NULL COLLATE pg_catalog."C",
    operation text COLLATE pg_catalog."C",
    outcome text COLLATE pg_catalog."C",
    reference text COLLATE pg_catalog."C",
    game_id text COLLATE pg_catalog."C",
    round_id text COLLATE pg_catalog."C",
    hash bytea,
    CONSTRAINT ledger_transaction_amount_minor_check CHECK (((amount_minor >= 0) AND (amount_minor <= '1000000000000'::bigint))),
    CONSTRAINT ledger_transaction_balance_minor_check CHECK (((balance_minor >= 0) AND (balance_minor <= '9007199254740991'::bigint))),
    CONSTRAINT ledger_transaction_check CHECK (((NOT late) OR (outcome = 'transaction_rolled_back'::text))),
    CONSTRAINT ledger_transaction_check1 CHECK (
CASE
    WHEN (operation IS NULL) THEN ((outcome IS NULL) AND (reference IS NULL) AND (amount_minor = 0))
    ELSE ((outcome IS NOT NULL) AND ((operation <> 'ROLLBACK'::text) OR (reference IS NOT NULL)))
END),
    CONSTRAINT ledger_transaction_check2 CHECK (
CASE
    WHEN (outcome = ANY (ARRAY['applied'::text, 'voided'::text])) THEN (num_nulls(sequence, movement_minor, balance_minor, hash) = 0)
    ELSE (num_nonnulls(sequence, movement_minor, balance_minor, hash) = 0)
END),
    CONSTRAINT ledger_transaction_game_id_check CHECK (((octet_length(game_id) >= 1) AND (octet_length(game_id) <= 64))),
    CONSTRAINT ledger_transaction_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT ledger_transaction_movement_minor_check CHECK (((movement_minor >= '-1000000000000'::bigint) AND (movement_minor <= '1000000000000'::bigint))),
    CONSTRAINT ledger_transaction_operation_check CHECK ((operation = ANY (ARRAY['DEBIT'::text, 'CREDIT'::text, 'ROLLBACK'::text]))),
    CONSTRAINT ledger_transaction_outcome_check CHECK ((outcome = ANY (ARRAY['applied'::text, 'voided'::text, 'reference_not_found'::text, 'transaction_rolled_back'::text, 'already_rolled_back'::text, 'already_settled'::text, 'not_rollbackable'::text, 'insufficient_funds'::text, 'balance_limit_exceeded'::text]))),
    CONSTRAINT ledger_transaction_reference_check CHECK (((octet_length(reference) >= 1) AND (octet_length(reference) <= 64))),
    CONSTRAINT ledger_transaction_round_id_check CHECK (((octet_length(round_id) >= 1) AND (octet_length(round_id) <= 64))),
    CONSTRAINT ledger_transaction_sequence_check CHECK ((sequence >= 1)),
    CONSTRAINT ledger_transaction_transaction_id_check CHECK (((octet_length(transaction_id) >= 1) AND (octet_length(transaction_id) <= 64)))
);


--
-- Name: ledger_entry; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.ledger_entry AS
 SELECT ledger_transaction.player_number,
    ledger_transaction.sequence,
    ledger_transaction.number AS transaction_number,
    ledger_transaction.movement_minor,
    ledger_transaction.balance_minor,
    ledger_transaction.hash
   FROM public.ledger_transaction
  WHERE (ledger_transaction.sequence IS NOT NULL);


--
-- Name: ledger_number; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.ledger_number
    START WITH 512
    INCREMENT BY 512
    MINVALUE 512
    NO MAXVALUE
    CACHE 1;


--
-- Name: ledger_rollback; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.ledger_rollback (
    customer_number bigint NOT NULL,
    target_id text NOT NULL COLLATE pg_catalog."C",
    player_number bigint NOT NULL,
    transaction_number bigint NOT NULL,
    CONSTRAINT ledger_rollback_target_id_check CHECK (((octet_length(target_id) >= 1) AND (octet_length(target_id) <= 64)))
);


--
-- Name: legacy_address; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.legacy_address (
    address bytea NOT NULL,
    enabled boolean NOT NULL,
    removed boolean NOT NULL,
    sports text NOT NULL COLLATE pg_catalog."C",
    rate_requests bigint,
    rate_window_seconds bigint,
    created_ms bigint NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT legacy_address_address_check CHECK ((octet_length(address) = 16)),
    CONSTRAINT legacy_address_check CHECK (((rate_requests IS NULL) = (rate_window_seconds IS NULL))),
    CONSTRAINT legacy_address_rate_requests_check CHECK (((rate_requests >= 1) AND (rate_requests <= 1000000000))),
    CONSTRAINT legacy_address_rate_window_seconds_check CHECK (((rate_window_seconds >= 1) AND (rate_window_seconds <= 86400)))
);


--
-- Name: player; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.player (
    number bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    customer_id text NOT NULL COLLATE pg_catalog."C",
    reference text NOT NULL COLLATE pg_catalog."C",
    currency text NOT NULL COLLATE pg_catalog."C",
    created_ms bigint NOT NULL,
    CONSTRAINT player_id_check CHECK (((octet_length(id) >= 5) AND (octet_length(id) <= 23))),
    CONSTRAINT player_reference_check CHECK ((reference ~ '^[A-Za-z0-9._:-]{1,64}$'::text))
);


--
-- Name: player_number_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.player ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.player_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: provider; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.provider (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    launch_url text NOT NULL COLLATE pg_catalog."C",
    return_url text COLLATE pg_catalog."C",
    audience text NOT NULL COLLATE pg_catalog."C",
    secret bytea NOT NULL,
    enabled boolean NOT NULL,
    created_ms bigint NOT NULL,
    revision bigint NOT NULL,
    launch_call boolean NOT NULL,
    CONSTRAINT provider_audience_check CHECK (((octet_length(audience) >= 1) AND (octet_length(audience) <= 256))),
    CONSTRAINT provider_id_check CHECK ((id ~ '^[a-z0-9][a-z0-9-]{0,63}$'::text)),
    CONSTRAINT provider_launch_url_check CHECK (((octet_length(launch_url) >= 8) AND (octet_length(launch_url) <= 1024))),
    CONSTRAINT provider_name_check CHECK (((octet_length(name) >= 1) AND (octet_length(name) <= 128))),
    CONSTRAINT provider_return_url_check CHECK (((octet_length(return_url) >= 8) AND (octet_length(return_url) <= 1024))),
    CONSTRAINT provider_secret_check CHECK (((octet_length(secret) >= 29) AND (octet_length(secret) <= 540)))
);


--
-- Name: schema_migration; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.schema_migration (
    number integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_ms bigint NOT NULL,
    CONSTRAINT schema_migration_number_check CHECK ((number > 0))
);


--
-- Name: store_identity; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.store_identity (
    one boolean DEFAULT true NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    CONSTRAINT store_identity_one_check CHECK (one)
);


--
-- Name: store_revision; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.store_revision (
    one boolean DEFAULT true NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT store_revision_one_check CHECK (one),
    CONSTRAINT store_revision_revision_check CHECK ((revision >= 0))
);


--
-- Data for Name: api_key; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.api_key OVERRIDING SYSTEM VALUE VALUES (1, 'key_6yftlktlL4O5oEDH', 'cus_3rziGXgM2aFQ7KuH', '', 'crk_uQ6v', '\x460462016bdf4dba1185b73365e3422ad6c2023ef1739363de6a8aa9bcfee0a4', 1795455291835, NULL, 1795455292736, NULL, 2);
INSERT INTO public.api_key OVERRIDING SYSTEM VALUE VALUES (2, 'key_A6MkX5vQqMHOtFZn', 'cus_1vrVmC8poIAevfQA', '', 'crk_1SH6', '\xfd8f319af8040aab01a11903672abf81e7942818c8949d1611663b7143e17a3e', 1795455292045, NULL, 1795455292808, NULL, 4);


--
-- Data for Name: currency; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.currency VALUES ('EUR', 2, 1795455292780);
INSERT INTO public.currency VALUES ('KWD', 3, 1795455292802);
INSERT INTO public.currency VALUES ('JPY', 0, 1795455292809);


--
-- Data for Name: customer; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.customer OVERRIDING SYSTEM VALUE VALUES (1, 'cus_3rziGXgM2aFQ7KuH', 'Casino', true, true, 'all', NULL, NULL, '127.0.0.0/8', 1795455291782, 1);
INSERT INTO public.customer OVERRIDING SYSTEM VALUE VALUES (2, 'cus_1vrVmC8poIAevfQA', 'Other', true, true, 'all', NULL, NULL, '127.0.0.0/8', 1795455291948, 3);


--
-- Data for Name: customer_games; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: game; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.game VALUES ('roulette', 'acme', 'roulette', 'slots', '', NULL, NULL, NULL, true, 'EUR
JPY
KWD', '', '', true, 1795455292404, 2);
INSERT INTO public.game VALUES ('lucky-7', 'acme', 'lucky-7', 'slots', '', NULL, NULL, NULL, true, 'EUR
JPY
KWD', '', '', false, 1795455292515, 3);


--
-- Data for Name: games_revision; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.games_revision VALUES (true, 3);


--
-- Data for Name: ledger_account; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.ledger_account VALUES (1, 99656, 7, '\x28cf3be0f2904c5d387d6607243f00016da325d409e62b79887a456c6e8a8500');
INSERT INTO public.ledger_account VALUES (2, 7, 1, '\x34779a2042a40530a33eb8a51de15bcb927cc9a2f898b9ee465e4219e98917a1');
INSERT INTO public.ledger_account VALUES (3, 7, 1, '\x885687cc53b7292f72166afbfd2d2bf7d87010c3aaadfd0c2fddd3dd07a7ab52');
INSERT INTO public.ledger_account VALUES (4, 0, 2, '\x88b4fe38388253de1839c6383c031ffe0c2d61f23c0338d2cf19e01627c4c3f1');


--
-- Data for Name: ledger_clearing; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.ledger_clearing VALUES (1, 'EUR', -99656);
INSERT INTO public.ledger_clearing VALUES (1, 'KWD', -7);
INSERT INTO public.ledger_clearing VALUES (1, 'JPY', -7);
INSERT INTO public.ledger_clearing VALUES (2, 'EUR', 0);


--
-- Data for Name: ledger_rollback; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.ledger_rollback VALUES (1, 'win', 1, 2560);
INSERT INTO public.ledger_rollback VALUES (1, 'never', 1, 3072);


--
-- Data for Name: ledger_transaction; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.ledger_transaction VALUES (512, 1, 1, 1, 100005, 100005, 100005, 1795455292816, false, 'in', 'CREDIT', 'applied', NULL, NULL, NULL, '\x2227b9f87cf5afc50333cb766e62ec26d1134deec4508eb4d8165ec5a25fb509');
INSERT INTO public.ledger_transaction VALUES (1024, 1, 1, 2, 250, -250, 99755, 1795455292846, false, 'bet', 'DEBIT', 'applied', NULL, 'roulette', 'r 1', '\xb747b8ad015e4e34cbdf1461c79ce56f152e6d2bb417a6556bb2fd9404079d3c');
INSERT INTO public.ledger_transaction VALUES (1536, 1, 1, 3, 500, 500, 100255, 1795455292849, false, 'win', 'CREDIT', 'applied', 'bet', NULL, NULL, '\x62d713e3d73990bf68cd3201f8a3a0693d47f1b53abbc46e36fee60404630806');
INSERT INTO public.ledger_transaction VALUES (2048, 1, 1, NULL, 200000, NULL, NULL, 1795455292864, false, 'much', 'DEBIT', 'insufficient_funds', NULL, NULL, NULL, NULL);
INSERT INTO public.ledger_transaction VALUES (2560, 1, 1, 4, 500, -500, 99755, 1795455292870, false, 'undo', 'ROLLBACK', 'applied', 'win', NULL, NULL, '\xab965d349dd51ace6be3d8d983bbae6fbb88b4787438675450a7b79e33e7d885');
INSERT INTO public.ledger_transaction VALUES (3328, 1, 1, NULL, 0, NULL, NULL, 1795455292873, false, 'never', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.ledger_transaction VALUES (3072, 1, 1, 5, 0, 0, 99755, 1795455292873, false, 'void', 'ROLLBACK', 'voided', 'never', NULL, NULL, '\xf7ccdcd827882d75d300dee9fb861c1f3ddfe7f0950c64c539621b9646b44aa9');
INSERT INTO public.ledger_transaction VALUES (3584, 1, 1, NULL, 5, NULL, NULL, 1795455292875, false, 'late', 'CREDIT', 'reference_not_found', 'nothing', NULL, NULL, NULL);
INSERT INTO public.ledger_transaction VALUES (4096, 1, 1, 6, 100, -100, 99655, 1795455292879, false, 'bet-2', 'DEBIT', 'applied', NULL, 'roulette', 'r 2', '\xd807c998a0cbac2ba28feda349f0c778b21856015728cea01a029b88bb218a35');
INSERT INTO public.ledger_transaction VALUES (4608, 1, 1, 7, 1, 1, 99656, 1795455292882, false, 'win-2', 'CREDIT', 'applied', 'bet-2', NULL, NULL, '\x28cf3be0f2904c5d387d6607243f00016da325d409e62b79887a456c6e8a8500');
INSERT INTO public.ledger_transaction VALUES (5120, 1, 1, NULL, 0, NULL, NULL, 1795455292884, false, 'no', 'ROLLBACK', 'already_settled', 'bet-2', NULL, NULL, NULL);
INSERT INTO public.ledger_transaction VALUES (5632, 1, 2, 1, 7, 7, 7, 1795455292890, false, 'b1', 'CREDIT', 'applied', NULL, NULL, NULL, '\x34779a2042a40530a33eb8a51de15bcb927cc9a2f898b9ee465e4219e98917a1');
INSERT INTO public.ledger_transaction VALUES (6144, 1, 3, 1, 7, 7, 7, 1795455292914, false, 'c1', 'CREDIT', 'applied', NULL, NULL, NULL, '\x885687cc53b7292f72166afbfd2d2bf7d87010c3aaadfd0c2fddd3dd07a7ab52');
INSERT INTO public.ledger_transaction VALUES (6656, 1, 3, NULL, 8, NULL, NULL, 1795455292924, false, 'c2', 'DEBIT', 'insufficient_funds', NULL, NULL, NULL, NULL);
INSERT INTO public.ledger_transaction VALUES (7168, 2, 4, 1, 42, 42, 42, 1795455292925, false, 'in', 'CREDIT', 'applied', NULL, NULL, NULL, '\x6d001bb0cb723165f08a2c711e0bd109785b46cd3c253eb6a5cb6deb1dc369e0');
INSERT INTO public.ledger_transaction VALUES (7680, 2, 4, 2, 42, -42, 0, 1795455292928, false, 'bet', 'DEBIT', 'applied', NULL, NULL, NULL, '\x88b4fe38388253de1839c6383c031ffe0c2d61f23c0338d2cf19e01627c4c3f1');


--
-- Data for Name: legacy_address; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.legacy_address VALUES ('\x00000000000000000000ffffc0000207', true, false, 'all', NULL, NULL, 1795455292130, 5);


--
-- Data for Name: player; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.player OVERRIDING SYSTEM VALUE VALUES (1, 'ply_DLxACVJSTo0Bt8XG', 'cus_3rziGXgM2aFQ7KuH', 'alice', 'EUR', 1795455292780);
INSERT INTO public.player OVERRIDING SYSTEM VALUE VALUES (2, 'ply_WTngQQh1E75gF0He', 'cus_3rziGXgM2aFQ7KuH', 'bob', 'KWD', 1795455292802);
INSERT INTO public.player OVERRIDING SYSTEM VALUE VALUES (3, 'ply_NUXSyASOody83UOA', 'cus_3rziGXgM2aFQ7KuH', 'carol', 'JPY', 1795455292809);
INSERT INTO public.player OVERRIDING SYSTEM VALUE VALUES (4, 'ply_eoAa1kmv4XzZVXsp', 'cus_1vrVmC8poIAevfQA', 'alice', 'EUR', 1795455292810);


--
-- Data for Name: provider; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.provider VALUES ('acme', 'Acme', 'https://acme.example/', NULL, 'acme', '\x59542b88673f89012c49fad0292addb77c642f88b7b01635adbd4eaff561c21393423f7ced32f2d28377958e24c92858a8e7171f42dd70396f7ea622', true, 1795455292248, 1, false);


--
-- Data for Name: schema_migration; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.schema_migration VALUES (1, 'customers', '7c5cf81804f89e8383425ff696f063b916d98e32ab819722b9db1ac0ce692aef', 1795455291584);
INSERT INTO public.schema_migration VALUES (2, 'players', '68029a0869ff12bc9ddf29b65195d3899e2661ea9e84ee8595b6dc6f9b3d043f', 1795455291601);
INSERT INTO public.schema_migration VALUES (3, 'games', 'c29a49f77e20804f805e0f5dc928fb72c8688fdf2c695a869215f6f9b070a42b', 1795455291632);
INSERT INTO public.schema_migration VALUES (4, 'ledger', '0be6d5320a62c12d35f2c7a0a39b75418e586d4869f6ee2be340c8df31beca02', 1795455291674);
INSERT INTO public.schema_migration VALUES (5, 'ledger_entered', 'f2ae70f94c44fee0e9453e815995321c64e142eaac17547bc317a13d6a896912', 1795455291689);


--
-- Data for Name: store_identity; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.store_identity VALUES (true, '4fda977c-8837-4c3e-bc39-c561f380562a');


--
-- Data for Name: store_revision; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.store_revision VALUES (true, 5);


--
-- Name: api_key_number_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.api_key_number_seq', 2, true);


--
-- Name: customer_number_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.customer_number_seq', 2, true);


--
-- Name: ledger_number; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.ledger_number', 7680, true);


--
-- Name: player_number_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.player_number_seq', 4, true);


--
-- Name: api_key api_key_digest_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_digest_key UNIQUE (digest);


--
-- Name: api_key api_key_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_id_key UNIQUE (id);


--
-- Name: api_key api_key_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (number);


--
-- Name: api_key api_key_revision_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_revision_key UNIQUE (revision);


--
-- Name: currency currency_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.currency
    ADD CONSTRAINT currency_pkey PRIMARY KEY (code);


--
-- Name: customer_games customer_games_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.customer_games
    ADD CONSTRAINT customer_games_pkey PRIMARY KEY (customer_id);


--
-- Name: customer customer_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.customer
    ADD CONSTRAINT customer_id_key UNIQUE (id);


--
-- Name: customer customer_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.customer
    ADD CONSTRAINT customer_pkey PRIMARY KEY (number);


--
-- Name: customer customer_revision_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.customer
    ADD CONSTRAINT customer_revision_key UNIQUE (revision);


--
-- Name: game game_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.game
    ADD CONSTRAINT game_pkey PRIMARY KEY (id);


--
-- Name: games_revision games_revision_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.games_revision
    ADD CONSTRAINT games_revision_pkey PRIMARY KEY (one);


--
-- Name: ledger_account ledger_account_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ledger_account
    ADD CONSTRAINT ledger_account_pkey PRIMARY KEY (player_number);


--
-- Name: ledger_clearing ledger_clearing_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ledger_clearing
    ADD CONSTRAINT ledger_clearing_pkey PRIMARY KEY (customer_number, currency);


--
-- Name: ledger_rollback ledger_rollback_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ledger_rollback
    ADD CONSTRAINT ledger_rollback_pkey PRIMARY KEY (customer_number, target_id);


--
-- Name: ledger_rollback ledger_rollback_transaction_number_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ledger_rollback
    ADD CONSTRAINT ledger_rollback_transaction_number_key UNIQUE (transaction_number);


--
-- Name: ledger_transaction ledger_transaction_customer_number_transaction_id_late_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ledger_transaction
    ADD CONSTRAINT ledger_transaction_customer_number_transaction_id_late_key UNIQUE (customer_number, transaction_id, late);


--
-- Name: ledger_transaction ledger_transaction_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ledger_transaction
    ADD CONSTRAINT ledger_transaction_pkey PRIMARY KEY (number);


--
-- Name: ledger_transaction ledger_transaction_player_number_sequence_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ledger_transaction
    ADD CONSTRAINT ledger_transaction_player_number_sequence_key UNIQUE (player_number, sequence);


--
-- Name: legacy_address legacy_address_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.legacy_address
    ADD CONSTRAINT legacy_address_pkey PRIMARY KEY (address);


--
-- Name: legacy_address legacy_address_revision_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.legacy_address
    ADD CONSTRAINT legacy_address_revision_key UNIQUE (revision);


--
-- Name: player player_customer_id_reference_currency_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.player
    ADD CONSTRAINT player_customer_id_reference_currency_key UNIQUE (customer_id, reference, currency);


--
-- Name: player player_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.player
    ADD CONSTRAINT player_id_key UNIQUE (id);


--
-- Name: player player_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.player
    ADD CONSTRAINT player_pkey PRIMARY KEY (number);


--
-- Name: provider provider_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.provider
    ADD CONSTRAINT provider_pkey PRIMARY KEY (id);


--
-- Name: schema_migration schema_migration_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.schema_migration
    ADD CONSTRAINT schema_migration_pkey PRIMARY KEY (number);


--
-- Name: store_identity store_identity_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.store_identity
    ADD CONSTRAINT store_identity_pkey PRIMARY KEY (one);


--
-- Name: store_revision store_revision_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.store_revision
    ADD CONSTRAINT store_revision_pkey PRIMARY KEY (one);


--
-- Name: api_key_by_customer; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX api_key_by_customer ON public.api_key USING btree (customer_id, number);


--
-- Name: game_by_provider; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX game_by_provider ON public.game USING btree (provider_id, id);


--
-- Name: ledger_credit; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ledger_credit ON public.ledger_transaction USING btree (customer_number, reference) WHERE ((operation = 'CREDIT'::text) AND (outcome = 'applied'::text) AND (reference IS NOT NULL));


--
-- Name: ledger_entered; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ledger_entered ON public.ledger_transaction USING btree (created_ms, number) WHERE (sequence IS NOT NULL);


--
-- Name: currency currency_is_frozen; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER currency_is_frozen BEFORE UPDATE ON public.currency FOR EACH ROW EXECUTE FUNCTION public.refuse_change('a currency is frozen when it is first used');


--
-- Name: currency currency_is_kept; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER currency_is_kept BEFORE TRUNCATE ON public.currency FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change('a currency that was used stays');


--
-- Name: currency currency_stays; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER currency_stays BEFORE DELETE ON public.currency FOR EACH ROW EXECUTE FUNCTION public.refuse_change('a currency that was used stays');


--
-- Name: ledger_account ledger_account_goes_on; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_account_goes_on BEFORE UPDATE ON public.ledger_account FOR EACH ROW WHEN (((new.sequence <= old.sequence) OR (new.player_number <> old.player_number))) EXECUTE FUNCTION public.refuse_change('an account only follows its entries');


--
-- Name: ledger_account ledger_account_is_kept; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_account_is_kept BEFORE TRUNCATE ON public.ledger_account FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change('the ledger is append-only');


--
-- Name: ledger_account ledger_account_stays; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_account_stays BEFORE DELETE ON public.ledger_account FOR EACH ROW EXECUTE FUNCTION public.refuse_change('the ledger is append-only');


--
-- Name: ledger_account ledger_accounts_begin_right; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_accounts_begin_right AFTER INSERT ON public.ledger_account REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_accounts_fit();


--
-- Name: ledger_account ledger_accounts_fit; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_accounts_fit AFTER UPDATE ON public.ledger_account REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_accounts_fit();


--
-- Name: ledger_clearing ledger_clearing_goes_on; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_clearing_goes_on BEFORE UPDATE ON public.ledger_clearing FOR EACH ROW WHEN (((new.customer_number <> old.customer_number) OR (new.currency <> old.currency))) EXECUTE FUNCTION public.refuse_change('the ledger is append-only');


--
-- Name: ledger_clearing ledger_clearing_is_kept; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_clearing_is_kept BEFORE TRUNCATE ON public.ledger_clearing FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change('the ledger is append-only');


--
-- Name: ledger_clearing ledger_clearing_stays; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_clearing_stays BEFORE DELETE ON public.ledger_clearing FOR EACH ROW EXECUTE FUNCTION public.refuse_change('the ledger is append-only');


--
-- Name: ledger_rollback ledger_rollback_is_kept; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_rollback_is_kept BEFORE TRUNCATE ON public.ledger_rollback FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change('the ledger is append-only');


--
-- Name: ledger_rollback ledger_rollback_is_permanent; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_rollback_is_permanent BEFORE DELETE OR UPDATE ON public.ledger_rollback FOR EACH ROW EXECUTE FUNCTION public.refuse_change('the ledger is append-only');


--
-- Name: ledger_rollback ledger_rollbacks_fit; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_rollbacks_fit AFTER INSERT ON public.ledger_rollback REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_rollbacks_fit();


--
-- Name: ledger_transaction ledger_transaction_is_kept; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_transaction_is_kept BEFORE TRUNCATE ON public.ledger_transaction FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change('the ledger is append-only');


--
-- Name: ledger_transaction ledger_transaction_is_permanent; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_transaction_is_permanent BEFORE DELETE OR UPDATE ON public.ledger_transaction FOR EACH ROW EXECUTE FUNCTION public.refuse_change('the ledger is append-only');


--
-- Name: ledger_transaction ledger_transactions_fit; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER ledger_transactions_fit AFTER INSERT ON public.ledger_transaction REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_transactions_fit();


--
-- Name: player player_is_kept; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER player_is_kept BEFORE TRUNCATE ON public.player FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change('a player is never deleted');


--
-- Name: player player_is_permanent; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER player_is_permanent BEFORE UPDATE ON public.player FOR EACH ROW EXECUTE FUNCTION public.refuse_change('a player is never changed');


--
-- Name: player player_stays; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER player_stays BEFORE DELETE ON public.player FOR EACH ROW EXECUTE FUNCTION public.refuse_change('a player is never deleted');


--
-- Name: api_key api_key_customer_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customer(id);


--
-- Name: customer_games customer_games_customer_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.customer_games
    ADD CONSTRAINT customer_games_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customer(id);


--
-- Name: game game_provider_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.game
    ADD CONSTRAINT game_provider_id_fkey FOREIGN KEY (provider_id) REFERENCES public.provider(id);


--
-- Name: ledger_account ledger_account_player_number_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ledger_account
    ADD CONSTRAINT ledger_account_player_number_fkey FOREIGN KEY (player_number) REFERENCES public.player(number);


--
-- Name: ledger_clearing ledger_clearing_currency_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ledger_clearing
    ADD CONSTRAINT ledger_clearing_currency_fkey FOREIGN KEY (currency) REFERENCES public.currency(code);


--
-- Name: ledger_clearing ledger_clearing_customer_number_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ledger_clearing
    ADD CONSTRAINT ledger_clearing_customer_number_fkey FOREIGN KEY (customer_number) REFERENCES public.customer(number);


--
-- Name: ledger_rollback ledger_rollback_transaction_number_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ledger_rollback
    ADD CONSTRAINT ledger_rollback_transaction_number_fkey FOREIGN KEY (transaction_number) REFERENCES public.ledger_transaction(number);


--
-- Name: player player_currency_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.player
    ADD CONSTRAINT player_currency_fkey FOREIGN KEY (currency) REFERENCES public.currency(code);


--
-- Name: player player_customer_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.player
    ADD CONSTRAINT player_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customer(id);


--
-- PostgreSQL database dump complete
--


