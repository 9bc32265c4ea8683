package sluice

import (
	"io"
	"strings"

	"sluice.dev/sluice/internal/abi"
)

// Builtin is a detector of the core.
type Builtin int

// The detectors, with the replacements that the gateway uses.
const (
	Email              Builtin = iota + 1 // <EMAIL_ADDRESS>
	CreditCard                            // <CREDIT_CARD>
	PhoneNumber                           // <PHONE_NUMBER>
	SSN                                   // <SSN>
	CanadaSIN                             // <CA_SIN>
	IBAN                                  // <IBAN>
	IPAddress                             // <IP_ADDRESS>
	APIKey                                // <API_KEY>
	PrivateKey                            // <PRIVATE_KEY>
	VATNumber                             // <VAT_NUMBER>
	GermanyTaxID                          // <DE_TAX_ID>
	FranceNIR                             // <FR_NIR>
	SpainNIF                              // <ES_NIF>
	ItalyFiscalCode                       // <IT_FISCAL_CODE>
	NetherlandsBSN                        // <NL_BSN>
	PolandPESEL                           // <PL_PESEL>
	SwedenPersonnummer                    // <SE_PERSONNUMMER>
	UKNINO                                // <UK_NINO>
	UKNHS                                 // <UK_NHS>
	IndiaAadhaar                          // <IN_AADHAAR>
	BrazilCPF                             // <BR_CPF>
	BrazilCNPJ                            // <BR_CNPJ>
	Secret                                // <SECRET>
)

var builtins = map[Builtin]struct {
	detector    int32
	replacement string
}{
	Email:              {abi.DetectEmail, "<EMAIL_ADDRESS>"},
	CreditCard:         {abi.DetectCard, "<CREDIT_CARD>"},
	PhoneNumber:        {abi.DetectPhone, "<PHONE_NUMBER>"},
	SSN:                {abi.DetectSsn, "<SSN>"},
	CanadaSIN:          {abi.DetectSin, "<CA_SIN>"},
	IBAN:               {abi.DetectIban, "<IBAN>"},
	IPAddress:          {abi.DetectIp, "<IP_ADDRESS>"},
	APIKey:             {abi.DetectApiKey, "<API_KEY>"},
	PrivateKey:         {abi.DetectPrivateKey, "<PRIVATE_KEY>"},
	VATNumber:          {abi.DetectVat, "<VAT_NUMBER>"},
	GermanyTaxID:       {abi.DetectTaxId, "<DE_TAX_ID>"},
	FranceNIR:          {abi.DetectNir, "<FR_NIR>"},
	SpainNIF:           {abi.DetectNif, "<ES_NIF>"},
	ItalyFiscalCode:    {abi.DetectFiscalCode, "<IT_FISCAL_CODE>"},
	NetherlandsBSN:     {abi.DetectBsn, "<NL_BSN>"},
	PolandPESEL:        {abi.DetectPesel, "<PL_PESEL>"},
	SwedenPersonnummer: {abi.DetectPersonnummer, "<SE_PERSONNUMMER>"},
	UKNINO:             {abi.DetectNino, "<UK_NINO>"},
	UKNHS:              {abi.DetectNhs, "<UK_NHS>"},
	IndiaAadhaar:       {abi.DetectAadhaar, "<IN_AADHAAR>"},
	BrazilCPF:          {abi.DetectCpf, "<BR_CPF>"},
	BrazilCNPJ:         {abi.DetectCnpj, "<BR_CNPJ>"},
	Secret:             {abi.DetectSecret, "<SECRET>"},
}

// Rule replaces the matches of a pattern, of a builtin or of words with a text.
type Rule struct {
	// Pattern is a regular expression in RE2 syntax. It is ignored if Builtin or Words is set.
	Pattern string
	Builtin Builtin
	// Words are words and names, which match as a whole, in upper or lower case. At most 10,000 words of 256
	// bytes. They are ignored if Builtin is set.
	Words []string
	// Replacement is the text of the builtin, or "<masked>", if it is empty.
	Replacement string
	// Remove replaces matches with nothing.
	Remove bool
}

// Matcher is a [Rule] or a [Builtin].
type Matcher interface{ asRule() Rule }

func (r Rule) asRule() Rule    { return r }
func (b Builtin) asRule() Rule { return Rule{Builtin: b} }

func (r Rule) text() string {
	switch {
	case r.Remove:
		return ""
	case r.Replacement != "":
		return r.Replacement
	case r.Builtin != 0:
		return builtins[r.Builtin].replacement
	}
	return "<masked>"
}

// compileRules returns the handle of a mask set.
func compileRules(on *instance, rules []Matcher) int32 {
	set := on.checked("creating a mask", "mask_new")
	on.orUndo(func() { on.call("mask_free", i32(set)) }, func() {
		for _, each := range rules {
			addRule(on, set, each.asRule())
		}
	})
	return set
}

func addRule(on *instance, set int32, rule Rule) {
	text, length := on.put([]byte(rule.text()))
	if rule.Builtin != 0 {
		builtin, ok := builtins[rule.Builtin]
		if !ok {
			fail(&CoreError{"adding a rule", "ERROR_ARGUMENT"})
		}
		on.checked("adding a rule", "mask_add_builtin", i32(set), i32(builtin.detector), text, length)
		return
	}
	if rule.Words != nil {
		lines := strings.Join(oneLine(rule.Words), "\n")
		words, size := on.put([]byte(lines))
		on.checked("adding a list of words", "mask_add_words", i32(set), words, size, text, length)
		return
	}
	regex := compilePattern(on, rule.Pattern, 0)
	// The set has its own reference to the pattern.
	defer on.call("regex_free", i32(regex))
	on.checked("adding a rule", "mask_add", i32(set), i32(regex), text, length)
}

// oneLine returns the words without line breaks, which separate words in the core.
func oneLine(words []string) []string {
	lines := make([]string, len(words))
	for index, word := range words {
		lines[index] = strings.ReplaceAll(word, "\n", " ")
	}
	return lines
}

// Mask is a set of rules that are applied together. Of overlapping matches, the replacement of the first
// is used.
type Mask struct{ compiled *compiled }

// NewMask compiles rules. It returns a [*PatternError] if a pattern cannot be compiled.
func NewMask(rules ...Matcher) (*Mask, error) {
	rules = append([]Matcher(nil), rules...)
	made, err := newCompiled(corePool, "mask_free", func(on *instance) int32 {
		return compileRules(on, rules)
	})
	if err != nil {
		return nil, err
	}
	return &Mask{made}, nil
}

// MustMask is like [NewMask], but panics if the rules cannot be compiled.
func MustMask(rules ...Matcher) *Mask {
	mask, err := NewMask(rules...)
	if err != nil {
		panic(err)
	}
	return mask
}

// pieceSize bounds how much of a text is copied into an instance at a time.
const pieceSize = 64 << 10

// MaskBytes returns a masked copy of a text in UTF-8. After an error, the text must not pass.
func (m *Mask) MaskBytes(text []byte) (masked []byte, err error) {
	masked = make([]byte, 0, len(text)+16)
	err = m.compiled.pool.run(func(on *instance) {
		stream := on.checked("creating a stream", "stream_new", i32(m.compiled.handle(on)))
		defer on.call("stream_free", i32(stream))
		for len(text) > pieceSize {
			masked = append(masked, pushText(on, stream, text[:pieceSize], false)...)
			text = text[pieceSize:]
		}
		masked = append(masked, pushText(on, stream, text, true)...)
	})
	if err != nil {
		return nil, err
	}
	return masked, nil
}

// MaskString returns a masked text. After an error, the text must not pass.
func (m *Mask) MaskString(text string) (string, error) {
	masked, err := m.MaskBytes([]byte(text))
	return string(masked), err
}

// HoldBytes returns the maximum number of bytes that a [MaskWriter] holds back, and false if there is no
// maximum because a match can be of any length.
func (m *Mask) HoldBytes() (count int, isBounded bool, err error) {
	err = m.compiled.pool.run(func(on *instance) {
		count = int(on.call("mask_hold", i32(m.compiled.handle(on))))
	})
	if count < 0 {
		return 0, false, err
	}
	return count, err == nil, err
}

// pushText returns what comes out of a stream, as a view.
func pushText(on *instance, stream int32, piece []byte, isEnd bool) []byte {
	text, length := on.put(piece)
	size := on.checked("masking", "stream_push", i32(stream), text, length, flag(isEnd))
	return on.view(address(on.call("stream_output", i32(stream))), int(size))
}

func flag(value bool) uint64 {
	if value {
		return 1
	}
	return 0
}

// MaskWriter masks a text that is written in pieces. What it writes does not depend on where the text was
// cut. It must be used by one goroutine at a time.
type MaskWriter struct {
	out    io.Writer
	mask   *Mask
	stream *session
	err    error
}

// NewMaskWriter returns a writer that writes the masked text to out. The text is complete after Close.
func NewMaskWriter(out io.Writer, mask *Mask) *MaskWriter {
	w := &MaskWriter{out: out, mask: mask}
	w.stream, w.err = mask.compiled.pool.open("stream_free", func(on *instance) int32 {
		return on.checked("creating a stream", "stream_new", i32(mask.compiled.handle(on)))
	})
	return w
}

// Write masks a piece of the text, which may end inside a character. Text that may still become part of a
// match is held back. After an error, all further calls return it.
func (w *MaskWriter) Write(piece []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	for rest := piece; len(rest) > 0; rest = rest[min(len(rest), pieceSize):] {
		if w.push(rest[:min(len(rest), pieceSize)], false); w.err != nil {
			return len(piece) - len(rest), w.err
		}
	}
	return len(piece), nil
}

// Close writes what was held back. It does not close the underlying writer.
func (w *MaskWriter) Close() error {
	if w.err == nil {
		if w.push(nil, true); w.err == nil {
			w.err = io.ErrClosedPipe
			w.stream.close()
			return nil
		}
	}
	if w.err == io.ErrClosedPipe {
		return nil
	}
	if w.stream != nil {
		w.stream.close()
	}
	return w.err
}

func (w *MaskWriter) push(piece []byte, isEnd bool) {
	var masked []byte
	w.err = w.stream.run(func(on *instance, handle int32) {
		masked = append(masked, pushText(on, handle, piece, isEnd)...)
	})
	if w.err == nil && len(masked) > 0 {
		_, w.err = w.out.Write(masked)
	}
}
