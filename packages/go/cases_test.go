package sluice

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf16"
)

// testCase is a case of the files that all hosts share, in the folder that CASES names.
type testCase struct {
	Title, Name string
	caseText
	Pattern, Code   string
	Offset          int
	Spans           [][2]int
	Full            *bool
	Rules           []caseRule
	Masked          *string
	MaskedHex       *string
	Hold            *int
	Routes          []caseRoute
	Listeners       [][2]any
	Requests        []caseRequest
	Encoding        string
	Count           int
	IDs             []uint32
	Rate, Unit      float64
	Burst           float64
	Error           string
	Steps           []caseStep
	Format, Message string
	Input, Output   string
	RejectedBy      *int
	Guards          []struct {
		Rules   []caseRule
		Rejects bool
	}
}

type caseRule struct {
	Pattern, Builtin, Replacement string
	Words                         []string
}

// caseText is `text`, `hex` (bytes that are not UTF-8) or `units` of UTF-16, `repeat` times.
type caseText struct {
	Text, Hex *string
	Units     []uint16
	Repeat    *int
}

type caseField struct{ Type, Name, Value string }

type caseRoute struct {
	ID                           int32
	Scope, RuleIndex, MatchIndex int32
	Hostname, Method             string
	Name                         *string
	Path                         *caseField
	Headers, Query               []caseField
	CreatedAt                    float64
}

type caseRequest struct {
	Method, Authority, Path, Query *string
	Headers                        [][2]string
	Expect                         any
}

type caseStep struct {
	Do               string
	Key              *caseText
	Amount, At       float64
	Is               *bool
	Remaining, Reset *float64
	Wait             any
}

func (t caseText) bytes() []byte {
	var once []byte
	switch {
	case t.Hex != nil:
		once, _ = hex.DecodeString(*t.Hex)
	case t.Units != nil:
		once = []byte(string(utf16.Decode(t.Units)))
	case t.Text != nil:
		once = []byte(*t.Text)
	}
	return bytes.Repeat(once, *or(t.Repeat, 1))
}

// or returns a pointer to a value that is not set otherwise.
func or[T any](value *T, otherwise T) *T {
	if value == nil {
		return &otherwise
	}
	return value
}

var ran atomic.Int64

func TestMain(m *testing.M) {
	code := m.Run()
	fmt.Printf("cases: %d\n", ran.Load())
	os.Exit(code)
}

// runCases reads the files of a folder: a list of cases, or an object that has one.
func runCases(t *testing.T, name string, check func(t *testing.T, each testCase)) {
	folder := os.Getenv("CASES")
	if folder == "" {
		t.Skip("CASES names no folder of case files")
	}
	paths, err := filepath.Glob(filepath.Join(folder, name, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no case files of ", name, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var list []testCase
		if json.Unmarshal(text, &list) != nil {
			var file struct{ Cases []testCase }
			if err := json.Unmarshal(text, &file); err != nil {
				t.Fatal(path, err)
			}
			list = file.Cases
		}
		for _, each := range list {
			ran.Add(1)
			t.Run(each.Title+each.Name, func(t *testing.T) { check(t, each) })
		}
	}
}

func TestPatterns(t *testing.T) {
	runCases(t, "regex/cases", func(t *testing.T, each testCase) {
		pattern, err := CompilePattern(each.Pattern)
		if each.Code != "" {
			failed, ok := err.(*PatternError)
			if !ok || failed.Name != each.Code || failed.Offset != each.Offset || !strings.HasSuffix(err.Error(), each.Message) {
				t.Error(err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		text := each.bytes()
		if spans, err := pattern.FindAll(text); err != nil || !slices.Equal(spans, each.Spans) {
			t.Error(spans, err)
		}
		if is, err := pattern.Match(text); err != nil || is != (len(each.Spans) > 0) {
			t.Error(is, err)
		}
		if is, err := pattern.FullMatch(text); each.Full != nil && (err != nil || is != *each.Full) {
			t.Error("full match:", is, err)
		}
	})
}

var caseBuiltins = map[string]Builtin{
	"DETECT_SSN": SSN, "DETECT_CARD": CreditCard, "DETECT_PHONE": PhoneNumber, "DETECT_EMAIL": Email,
	"DETECT_SIN":          CanadaSIN,
	"DETECT_IBAN":         IBAN,
	"DETECT_IP":           IPAddress,
	"DETECT_VAT":          VATNumber,
	"DETECT_TAX_ID":       GermanyTaxID,
	"DETECT_NIR":          FranceNIR,
	"DETECT_NIF":          SpainNIF,
	"DETECT_FISCAL_CODE":  ItalyFiscalCode,
	"DETECT_BSN":          NetherlandsBSN,
	"DETECT_PESEL":        PolandPESEL,
	"DETECT_PERSONNUMMER": SwedenPersonnummer,
	"DETECT_NINO":         UKNINO,
	"DETECT_NHS":          UKNHS,
	"DETECT_AADHAAR":      IndiaAadhaar,
	"DETECT_CPF":          BrazilCPF,
	"DETECT_CNPJ":         BrazilCNPJ,
	"DETECT_SECRET":       Secret,
}

func rulesOf(list []caseRule) (rules []Matcher) {
	for _, rule := range list {
		rules = append(rules, Rule{rule.Pattern, caseBuiltins[rule.Builtin], rule.Words, rule.Replacement, rule.Replacement == ""})
	}
	return rules
}

func caseMask(t *testing.T, each testCase) *Mask {
	rules := []Matcher{SSN, CreditCard, PhoneNumber, Email, CanadaSIN}
	if each.Rules != nil {
		rules = rulesOf(each.Rules)
	}
	mask, err := NewMask(rules...)
	if err != nil {
		t.Fatal(err)
	}
	return mask
}

func TestMasksCutAnywhere(t *testing.T) {
	runCases(t, "regex/masks", func(t *testing.T, each testCase) {
		mask, text := caseMask(t, each), each.bytes()
		wanted := caseText{Text: each.Masked, Hex: each.MaskedHex, Repeat: each.Repeat}.bytes()
		if masked, err := mask.MaskBytes(text); err != nil || !bytes.Equal(masked, wanted) {
			t.Errorf("%q %v", masked, err)
		}
		for size := 1; size <= len(text); size += max(1, len(text)/100) {
			var out bytes.Buffer
			writer := NewMaskWriter(&out, mask)
			for piece := range slices.Chunk(text, size) {
				if _, err := writer.Write(piece); err != nil {
					t.Fatal(err)
				}
			}
			if err := writer.Close(); err != nil || !bytes.Equal(out.Bytes(), wanted) {
				t.Fatalf("in pieces of %d: %q %v", size, out.Bytes(), err)
			}
		}
		if count, isBounded, err := mask.HoldBytes(); each.Hold != nil {
			if err != nil || isBounded != (*each.Hold >= 0) || isBounded && count != *each.Hold {
				t.Error("hold:", count, isBounded, err)
			}
		}
	})
}

// bytesOfLatin1 returns a text whose characters are bytes.
func bytesOfLatin1(text string) string {
	out := make([]byte, 0, len(text))
	for _, each := range text {
		out = append(out, byte(each))
	}
	return string(out)
}

func (r caseRoute) route() Route {
	path := *or(r.Path, caseField{Type: "prefix", Value: "/"})
	fields := func(list []caseField) (fields []Field) {
		for _, each := range list {
			fields = append(fields, Field{each.Name, each.Value, each.Type == "regex"})
		}
		return fields
	}
	types := map[string]PathType{"prefix": PathPrefix, "exact": PathExact, "regex": PathRegex}
	return Route{
		ID: r.ID, Path: path.Value, PathType: types[path.Type], Hostname: r.Hostname, Method: r.Method,
		Headers: fields(r.Headers), Query: fields(r.Query), Created: r.CreatedAt,
		Name: *or(r.Name, fmt.Sprintf("n/%d", r.ID)), RuleIndex: r.RuleIndex, MatchIndex: r.MatchIndex, Scope: r.Scope,
	}
}

func TestRoutes(t *testing.T) {
	runCases(t, "routes", func(t *testing.T, each testCase) {
		var routes []Route
		for _, route := range each.Routes {
			routes = append(routes, route.route())
		}
		var listeners []Listener
		for _, listener := range each.Listeners {
			listeners = append(listeners, Listener{listener[0].(string), int32(listener[1].(float64))})
		}
		router, err := NewRouter(routes, listeners...)
		if err != nil {
			t.Fatal(err)
		}
		for _, request := range each.Requests {
			target := *or(request.Path, "/")
			if request.Query != nil {
				target += "?" + *request.Query
			}
			match := Request{
				Target: bytesOfLatin1(target),
				Method: bytesOfLatin1(*or(request.Method, "GET")),
				Host:   bytesOfLatin1(*or(request.Authority, "a")),
			}
			for _, header := range request.Headers {
				match.Headers = append(match.Headers, [2]string{bytesOfLatin1(header[0]), bytesOfLatin1(header[1])})
			}
			id, ok, err := router.Match(match)
			wanted, isID := request.Expect.(float64)
			if err != nil || ok != isID || ok && id != int32(wanted) {
				t.Errorf("%+v: %d, %v, %v instead of %v", match, id, ok, err, request.Expect)
			}
		}
	})
}

func TestTokens(t *testing.T) {
	counters := map[string]*TokenCounter{
		"o200k_base": NewTokenCounter("gpt-4o"), "cl100k_base": NewTokenCounter("gpt-4"),
	}
	runCases(t, "tokens/cases", func(t *testing.T, each testCase) {
		counter, text := counters[each.Encoding], string(each.bytes())
		if count, err := counter.Count(text); err != nil || count != each.Count {
			t.Errorf("%d instead of %d, %v", count, each.Count, err)
		}
		if ids, err := counter.Encode(text, len(each.IDs)); err != nil || !slices.Equal(ids, each.IDs) {
			t.Error(ids, err)
		}
	})
}

func TestRates(t *testing.T) {
	runCases(t, "rate", checkRate)
}

func TestLimits(t *testing.T) {
	runCases(t, "limits", checkRate)
}

func checkRate(t *testing.T, each testCase) {
	limiter, err := NewRateLimiter(Limit{
		Rate: each.Rate, Per: time.Duration(each.Unit * float64(time.Millisecond)), Burst: each.Burst, Keys: 10,
	})
	if each.Error != "" {
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), each.Error) {
			t.Error(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(string, float64) (Decision, error){
		"take": limiter.Take, "peek": limiter.Peek, "charge": limiter.Charge,
	}
	for _, step := range each.Steps {
		limiter.now = func() float64 { return step.At }
		key := "key"
		if step.Key != nil {
			key = string(step.Key.bytes())
		}
		decision, err := calls[step.Do](key, step.Amount)
		isRight := err == nil && (step.Is == nil || *step.Is == decision.Allowed) &&
			(step.Remaining == nil || *step.Remaining == decision.Remaining) &&
			(step.Reset == nil || isNear(*step.Reset, decision.Reset))
		switch wait := step.Wait.(type) {
		case string:
			isRight = isRight && decision.Wait == Never
		case float64:
			isRight = isRight && isNear(wait, decision.Wait)
		}
		if !isRight {
			t.Fatalf("%s at %v: %+v %v", step.Do, step.At, decision, err)
		}
	}
}

func TestTexts(t *testing.T) {
	formats := map[string]Format{
		"Completions": Completions, "Messages": Messages, "Responses": Responses, "Embeddings": Embeddings,
	}
	kinds := map[string]Kind{"request": RequestMessage, "answer": AnswerMessage, "stream": StreamMessage}
	runCases(t, "texts/cases", func(t *testing.T, each testCase) {
		var list []Guard
		for _, guard := range each.Guards {
			list = append(list, Guard{rulesOf(guard.Rules), guard.Rejects})
		}
		guards, err := NewGuards(list...)
		if err != nil {
			t.Fatal(err)
		}
		message := []byte(each.Input)
		for cut := 0; cut <= len(message); cut += max(1, len(message)/20) {
			rewriter, err := guards.NewRewriter(formats[each.Format], kinds[each.Message])
			if err != nil {
				t.Fatal(err)
			}
			out, err := rewriter.Push(message[:cut])
			if err == nil {
				var rest []byte
				rest, err = rewriter.End(message[cut:])
				out = append(out, rest...)
			}
			rewriter.Close()
			checkTexts(t, each, out, err)
		}
	})
}

func checkTexts(t *testing.T, each testCase, out []byte, err error) {
	switch failed := err.(type) {
	case nil:
		if each.Code != "" || each.RejectedBy != nil || string(out) != each.Output {
			t.Errorf("%q instead of %q", out, each.Output)
		}
	case *UnreadableError:
		if failed.Name != each.Code {
			t.Errorf("%v instead of %q", err, each.Code)
		}
	case *RejectedError:
		if failed.Guard != *or(each.RejectedBy, -1) {
			t.Errorf("%v instead of %d", err, *or(each.RejectedBy, -1))
		}
	default:
		t.Error(err)
	}
}

func isNear(milliseconds float64, duration time.Duration) bool {
	return math.Abs(milliseconds-float64(duration)/1e6) < 1e-4
}

// TestModels compares the encodings of models with those of the gateway, which MODELS has.
func TestModels(t *testing.T) {
	var wanted map[string]struct {
		Encoding string
		Factor   float64
	}
	if os.Getenv("MODELS") == "" {
		t.Skip("MODELS has no encodings")
	}
	if err := json.Unmarshal([]byte(os.Getenv("MODELS")), &wanted); err != nil || len(wanted) == 0 {
		t.Fatal(err)
	}
	files := map[string]func() (*compiled, error){"o200k_base": o200k, "cl100k_base": cl100k}
	for model, each := range wanted {
		vocabulary, _ := files[each.Encoding]()
		found := encodingOf(model)
		if known, err := found.vocabulary(); err != nil || known != vocabulary || found.factor != each.Factor {
			t.Errorf("%s: factor %v, %v", model, found.factor, err)
		}
	}
}
