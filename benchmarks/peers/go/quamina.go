// Reads patterns and events, one JSON text a line, asks quamina, and prints answers and CPU seconds of this process.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"syscall"

	"github.com/timbray/quamina"
)

func lines(path string) [][]byte {
	file, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	var all [][]byte
	scanner := bufio.NewScanner(file)
	scanner.Buffer(make([]byte, 1<<20), 1<<20)
	for scanner.Scan() {
		all = append(all, append([]byte(nil), scanner.Bytes()...))
	}
	return all
}

func spent() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func main() {
	matcher, err := quamina.New()
	if err != nil {
		panic(err)
	}
	for row, pattern := range lines(os.Args[1]) {
		if err := matcher.AddPattern(row, string(pattern)); err != nil {
			panic(err)
		}
	}
	events := lines(os.Args[2])
	repeats, _ := strconv.Atoi(os.Args[3])
	answers := make([][]int, len(events))
	for i, event := range events {
		found, err := matcher.MatchesForEvent(event)
		if err != nil {
			panic(err)
		}
		rows := make([]int, 0, len(found))
		for _, one := range found {
			rows = append(rows, one.(int))
		}
		sort.Ints(rows)
		answers[i] = rows
	}
	least := 1e18
	for i := 0; i < repeats; i++ {
		start := spent()
		for _, event := range events {
			if _, err := matcher.MatchesForEvent(event); err != nil {
				panic(err)
			}
		}
		least = min(least, (spent()-start)/float64(len(events)))
	}
	said, _ := json.Marshal(map[string]any{"answers": answers, "single": least})
	fmt.Println(string(said))
}
