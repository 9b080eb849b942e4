package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"
)

const usage = "customer poll SPORT EVENT CHANGES | launch GAME REFERENCE CURRENCY | " +
	"debit|credit PLAYER AMOUNT_MINOR CURRENCY | settle"

func launch(game, reference, currency string) {
	body, err := json.Marshal(map[string]string{"mode": "real", "player_reference": reference, "currency": currency})
	must(err)
	_, _, text, err := ask("POST", "/api/v1/casino/games/"+game+"/launch", body, nil, 15*time.Second)
	must(err)
	fmt.Println(string(text))
}

func main() {
	words := os.Args[1:]
	command := ""
	if len(words) > 0 {
		command = words[0]
	}
	if command == "settle" || len(words) == 4 && (command == "debit" || command == "credit") {
		for _, entry := range unanswered() { // first what was left open
			settle(entry)
		}
	}
	switch {
	case command == "settle":
	case command == "poll" && len(words) == 4:
		changes, err := strconv.Atoi(words[3])
		must(err)
		poll(words[1], words[2], changes)
	case command == "launch" && len(words) == 4:
		launch(words[1], words[2], words[3])
	case command == "debit" && len(words) == 4:
		move("DEBIT", words[1], words[2], words[3])
	case command == "credit" && len(words) == 4:
		move("CREDIT", words[1], words[2], words[3])
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
}
