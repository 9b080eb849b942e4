#!/bin/sh
# Adds a customer, issues a key and reads its usage by the admin API, with curl. README.md shows how to run it.
set -eu

CONSOLE=${CONSOLE:-http://127.0.0.1:9090}
[ -n "${TOKEN:-}" ] || { echo "back_office.sh: set TOKEN to a token of croupier operator token add" >&2; exit 2; }

# usage: call METHOD PATH [JSON]. Prints the answer; a refusal goes to standard error, and ends the script.
call() {
    if [ $# -gt 2 ]; then
        set -- "$1" "$2" --header "Content-Type: application/json" --data "$3"
    fi
    method=$1 path=$2
    shift 2
    # The token goes by standard input: others can see a command line.
    answer=$(printf 'header = "Authorization: Bearer %s"\n' "$TOKEN" |
        curl --config - --silent --show-error --fail-with-body --request "$method" "$@" "$CONSOLE/admin/v1/$path") ||
        { printf '%s\n' "$answer" >&2; return 1; }
    printf '%s\n' "$answer"
}

# usage: member NAME. The value of a member of a document's first level that is a plain string: an id, a key.
member() {
    sed -n "s/.*\"$1\":\"\([A-Za-z0-9_]*\)\".*/\1/p"
}

case "${1:-} $#" in
"add 3")
    case $2$3 in *[\"\\]*) echo "back_office.sh: neither may have quotes or backslashes" >&2; exit 2 ;; esac
    added=$(call POST customers "{\"name\": \"$2\", \"cidrs\": [\"$3\"]}")
    customer=$(printf '%s\n' "$added" | member id)
    issued=$(call POST keys "{\"customer\": \"$customer\", \"expires_at\": \"365d\"}")
    echo "$customer $(printf '%s\n' "$issued" | member key)"
    ;;
"usage 2")
    call GET "usage?customer=$2"
    ;;
*)
    echo "usage: back_office.sh add NAME CIDR | usage CUSTOMER" >&2
    exit 2
    ;;
esac
