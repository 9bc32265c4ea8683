package sluice

import (
	"cmp"
	"fmt"
	"unicode/utf8"

	"sluice.dev/sluice/internal/abi"
)

// PatternError is a pattern that cannot be compiled.
type PatternError struct {
	Pattern string
	// Offset is the position in the pattern in bytes.
	Offset int
	// Name is the name of the code in core.abi.json, for example "REGEX_LOOKAROUND".
	Name string
	// Reason says what is wrong, for example "a parenthesis has no partner".
	Reason string
}

func (e *PatternError) Error() string {
	character := utf8.RuneCountInString(e.Pattern[:min(max(0, e.Offset), len(e.Pattern))]) + 1
	return fmt.Sprintf("sluice: pattern %q: %s (at character %d)", e.Pattern, e.Reason, character)
}

func patternError(pattern string, offset int, code int32) *PatternError {
	name := codeName(code)
	return &PatternError{pattern, offset, name, cmp.Or(abi.PatternMessage(code), name)}
}

func compilePattern(on *instance, pattern string, flags int32) int32 {
	source, length := on.put([]byte(pattern))
	handle := on.call("regex_compile", source, length, i32(flags))
	if handle < 0 {
		fail(patternError(pattern, int(on.call("last_error_offset")), handle))
	}
	return handle
}

// Pattern is a regular expression in RE2 syntax. Searching takes time linear in the text.
type Pattern struct{ compiled *compiled }

// CompilePattern compiles a pattern. It returns a [*PatternError] if that is not possible.
func CompilePattern(pattern string) (*Pattern, error) {
	made, err := newCompiled(corePool, "regex_free", func(on *instance) int32 {
		return compilePattern(on, pattern, 0)
	})
	if err != nil {
		return nil, err
	}
	return &Pattern{made}, nil
}

// Match reports whether the pattern matches anywhere in the text.
func (p *Pattern) Match(text []byte) (bool, error) { return p.matches("regex_is_match", text) }

// MatchString reports whether the pattern matches anywhere in the text.
func (p *Pattern) MatchString(text string) (bool, error) { return p.Match([]byte(text)) }

// FullMatch reports whether the pattern matches the whole text.
func (p *Pattern) FullMatch(text []byte) (bool, error) { return p.matches("regex_full_match", text) }

func (p *Pattern) matches(function string, text []byte) (matches bool, err error) {
	err = p.compiled.pool.run(func(on *instance) {
		place, length := on.put(text)
		matches = on.checked("matching", function, i32(p.compiled.handle(on)), place, length) == 1
	})
	return matches, err
}

// maxSpans is the number of matches that one call of the core returns.
const maxSpans = 1024

// FindAll returns the start and the end of each match in bytes, from left to right.
func (p *Pattern) FindAll(text []byte) (spans [][2]int, err error) {
	err = p.compiled.pool.run(func(on *instance) {
		handle := i32(p.compiled.handle(on))
		place, length := on.put(text)
		out := on.alloc(maxSpans * 8)
		for from := 0; from <= len(text); {
			count := on.checked("searching", "regex_find_all",
				handle, place, length, i32(int32(from)), out.arg(), i32(maxSpans))
			for i := range address(count) {
				start, end := on.word(out+i*8), on.word(out+i*8+4)
				spans = append(spans, [2]int{int(start), int(end)})
			}
			if count < maxSpans {
				return
			}
			from = afterMatch(text, spans[len(spans)-1])
		}
	})
	return spans, err
}

// afterMatch returns where the search continues: one character after an empty match.
func afterMatch(text []byte, last [2]int) int {
	if last[0] < last[1] {
		return last[1]
	}
	_, size := utf8.DecodeRune(text[last[1]:])
	return last[1] + max(1, size)
}
