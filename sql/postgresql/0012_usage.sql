-- How many requests each customer made: by day, by group of routes, by class of the answers' status. Servers add
-- to it once a minute. Nothing refers to these rows: an operator may delete those of days no longer wanted.
CREATE TABLE usage_requests (
    day         bigint NOT NULL, -- UTC, since 1970-01-01
    customer_id text COLLATE "C" NOT NULL, -- '': of those that a server could not tell apart
    route_group text COLLATE "C" NOT NULL,
    answers_2xx bigint NOT NULL CHECK (answers_2xx >= 0),
    answers_3xx bigint NOT NULL CHECK (answers_3xx >= 0),
    answers_4xx bigint NOT NULL CHECK (answers_4xx >= 0),
    answers_5xx bigint NOT NULL CHECK (answers_5xx >= 0),
    PRIMARY KEY (day, customer_id, route_group)
);
