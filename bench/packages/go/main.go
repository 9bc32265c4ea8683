// Command main measures the candidates of bench/packages/go.ts, in the texts of a folder.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"sluice.dev/sluice"
)

var (
	folder   = os.Args[1]
	counters = map[string]func(string) int{"sluice": func(text string) int {
		return must(sluice.CountTokens(text, "gpt-4o"))
	}}
	masks = map[string]func(string) string{}
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func read(name string) string { return string(must(os.ReadFile(filepath.Join(folder, name)))) }

func hasLuhn(text string) bool {
	sum, count := 0, 0
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] < '0' || text[i] > '9' {
			continue
		}
		digit := int(text[i] - '0')
		if count%2 == 1 {
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
		count++
	}
	return sum%10 == 0
}

// throughRegexp masks with the standard library.
func throughRegexp() func(string) string {
	type rule struct {
		pattern *regexp.Regexp
		name    string
		checked bool
	}
	var raw [][3]any
	if err := json.Unmarshal([]byte(read("rules.json")), &raw); err != nil {
		panic(err)
	}
	var rules []rule
	for _, each := range raw {
		rules = append(rules, rule{regexp.MustCompile(each[0].(string)), each[1].(string), each[2].(bool)})
	}
	return func(text string) string {
		for _, each := range rules {
			if each.checked {
				text = each.pattern.ReplaceAllStringFunc(text, func(found string) string {
					if hasLuhn(found) {
						return each.name
					}
					return found
				})
			} else {
				text = each.pattern.ReplaceAllLiteralString(text, each.name)
			}
		}
		return text
	}
}

func processTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// speed returns MB in a second of CPU time. It repeats the work until it has taken the least seconds.
func speed(work func(), size int, least float64) float64 {
	begun, spent, times := processTime(), 0.0, 0
	for spent <= least {
		work()
		times++
		spent = processTime() - begun
	}
	return float64(size*times) / spent / 1e6
}

func main() {
	mask := sluice.MustMask(sluice.SSN, sluice.CreditCard, sluice.PhoneNumber, sluice.Email, sluice.CanadaSIN)
	masks["sluice"] = func(text string) string { return must(mask.MaskString(text)) }
	masks["regexp"] = throughRegexp()
	names := []string{"sluice", "regexp"}
	for name := range counters {
		if name != "sluice" {
			names = append(names, name)
		}
	}
	fmt.Println(strings.Join(names, " "))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		candidate, task, kind, turn := words[0], words[1], words[2], words[3]
		if task == "tokens" {
			count, warm, text := counters[candidate], read("tokens."+kind+".0"), read("tokens."+kind+"."+turn)
			for range 3 {
				count(warm)
			}
			fmt.Println(speed(func() { count(text) }, len(text), 0), count(text))
		} else {
			text := read("mask." + kind)
			fmt.Println(speed(func() { masks[candidate](text) }, len(text), 0.05), 0)
		}
	}
}
