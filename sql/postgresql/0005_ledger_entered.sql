-- What was entered on a day (croupier wallet export --day). Its new rows go to its end.
CREATE INDEX ledger_entered ON ledger_transaction (created_ms, number) WHERE sequence IS NOT NULL;
