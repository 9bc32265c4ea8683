package sluice

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"math"
	"runtime"
	"strings"
	"sync"
)

var (
	//go:embed data/o200k_base.tokens.gz
	o200kFile []byte
	//go:embed data/cl100k_base.tokens.gz
	cl100kFile []byte

	// Each instance has vocabularies of its own, of up to 17 MB, so there are few.
	tokensPool = newPool(coreModule, min(4, runtime.GOMAXPROCS(0)))

	o200kVocabulary, cl100kVocabulary vocabulary
)

// These are functions, so that programs that count no tokens do not contain the files.
func o200k() (*compiled, error)  { return o200kVocabulary.load(o200kFile) }
func cl100k() (*compiled, error) { return cl100kVocabulary.load(cl100kFile) }

// vocabulary is loaded when it is first needed.
type vocabulary struct {
	once   sync.Once
	loaded *compiled
	err    error
}

func (v *vocabulary) load(file []byte) (*compiled, error) {
	v.once.Do(func() { v.loaded, v.err = newVocabulary(file) })
	return v.loaded, v.err
}

func newVocabulary(file []byte) (*compiled, error) {
	return newCompiled(tokensPool, "tokens_free", func(on *instance) int32 {
		var data []byte
		unpacked, err := gzip.NewReader(bytes.NewReader(file))
		if err == nil {
			data, err = io.ReadAll(unpacked)
		}
		if err != nil {
			fail(err)
		}
		block := on.block(len(data) + 16)
		on.write(block, data)
		handle := on.call("tokens_load", block.arg(), i32(int32(len(data))))
		on.call("block_free", block.arg())
		if handle < 0 {
			fail(&CoreError{"loading a vocabulary", codeName(handle)})
		}
		return handle
	})
}

// encoding is a vocabulary, and the number of tokens of a model per token of the vocabulary.
type encoding struct {
	vocabulary func() (*compiled, error)
	factor     float64
}

// models has the encodings by prefix of the model's name. The first prefix that no letter or digit
// follows wins. The gateway has the same table in src/engines/core/tokens-models.ts.
var models = []struct {
	prefix string
	encoding
}{
	{"gpt-4o", encoding{o200k, 1}},
	{"chatgpt-4o", encoding{o200k, 1}},
	{"gpt-4.1", encoding{o200k, 1}},
	{"gpt-4.5", encoding{o200k, 1}},
	{"gpt-5", encoding{o200k, 1}},
	{"gpt-oss", encoding{o200k, 1}},
	{"o1", encoding{o200k, 1}},
	{"o3", encoding{o200k, 1}},
	{"o4", encoding{o200k, 1}},
	{"codex-mini", encoding{o200k, 1}},
	{"gpt-4", encoding{cl100k, 1}},
	{"gpt-3.5", encoding{cl100k, 1}},
	{"gpt-35", encoding{cl100k, 1}},
	{"text-embedding-3", encoding{cl100k, 1}},
	{"text-embedding-ada-002", encoding{cl100k, 1}},
	{"davinci-002", encoding{cl100k, 1}},
	{"babbage-002", encoding{cl100k, 1}},
	{"claude", encoding{o200k, 1.2}},
	{"gemini", encoding{o200k, 1.1}},
	{"gemma", encoding{o200k, 1.1}},
}

func encodingOf(model string) encoding {
	name := strings.ToLower(model)
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = withoutProvider(strings.TrimPrefix(name, "ft:"))
	for _, each := range models {
		rest, ok := strings.CutPrefix(name, each.prefix)
		if ok && (rest == "" || !isLetterOrDigit(rest[0])) {
			return each.encoding
		}
	}
	return encoding{o200k, 1.2}
}

// withoutProvider removes "anthropic.", with the region before it, from the begin of a name.
func withoutProvider(name string) string {
	rest := name
	for {
		label, after, ok := strings.Cut(rest, ".")
		if !ok || label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz-") != "" {
			return name
		}
		if rest = after; label == "anthropic" {
			name = rest
		}
	}
}

func isLetterOrDigit(b byte) bool { return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' }

// CountTokens returns the number of tokens of a text for a model such as "gpt-4o". The number is an
// estimate if the vocabulary of the model is not published.
func CountTokens(text, model string) (int, error) { return NewTokenCounter(model).Count(text) }

// TokenCounter counts tokens for a model.
type TokenCounter struct{ encoding encoding }

// NewTokenCounter returns a counter for a model. The vocabulary is loaded when it is first needed.
func NewTokenCounter(model string) *TokenCounter { return &TokenCounter{encodingOf(model)} }

// Count returns the number of tokens of a text. Bytes that are not UTF-8 count as U+FFFD.
func (c *TokenCounter) Count(text string) (count int, err error) {
	vocabulary, err := c.encoding.vocabulary()
	if err != nil {
		return 0, err
	}
	err = tokensPool.run(func(on *instance) {
		handle := vocabulary.handle(on)
		place, length := on.put([]byte(text))
		count = int(on.checked("counting tokens", "tokens_count", i32(handle), place, length))
	})
	return int(math.Ceil(float64(count) * c.encoding.factor)), err
}

// Encode returns the ids of the first tokens of a text in the published vocabulary, at most limit of them.
func (c *TokenCounter) Encode(text string, limit int) (ids []uint32, err error) {
	vocabulary, err := c.encoding.vocabulary()
	if err != nil {
		return nil, err
	}
	err = tokensPool.run(func(on *instance) {
		handle := vocabulary.handle(on)
		place, length := on.put([]byte(text))
		// A token has at least one byte.
		limit := max(0, min(limit, len(text)*3))
		out := on.alloc(limit*4 + 16)
		count := on.checked("encoding", "tokens_encode", i32(handle), place, length, out.arg(), i32(int32(limit)))
		for i := range address(min(int(count), limit)) {
			ids = append(ids, uint32(on.word(out+i*4)))
		}
	})
	return ids, err
}

// Message is a message of a chat.
type Message struct{ Role, Content string }

// CountMessages returns the number of tokens of a chat. Chat formats add about three tokens to each
// message, and three to begin the answer.
func (c *TokenCounter) CountMessages(messages []Message) (int, error) {
	total := 3
	for _, each := range messages {
		total += 3
		for _, text := range []string{each.Role, each.Content} {
			count, err := c.Count(text)
			if err != nil {
				return 0, err
			}
			total += count
		}
	}
	return total, nil
}
