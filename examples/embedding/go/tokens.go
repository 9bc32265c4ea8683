package main

import (
	"bytes"
	"io"
	"os"

	"github.com/andybalholm/brotli"
)

// readVocabulary takes brotli off NAME.tokens.br.
func readVocabulary(path string) ([]byte, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(brotli.NewReader(bytes.NewReader(file)))
}

// loadVocabulary gives the handle that tokens are counted with. The file goes into a block, not into
// scratch: what is loaded takes 17 MB, which should not lie behind the file's own.
func (c *Core) loadVocabulary(file []byte) (int32, error) {
	block := uint32(c.call("block_new", int32(len(file)+16)))
	if block == 0 {
		panic("no room")
	}
	c.module.Memory().Write(block, file)
	handle := c.call("tokens_load", block, int32(len(file)))
	c.call("block_free", block)
	return c.check(handle)
}

func (c *Core) countTokens(vocabulary int32, text []byte) (count int32, err error) {
	c.scratch(func() {
		count, err = c.check(c.call("tokens_count", vocabulary, c.put(text), int32(len(text))))
	})
	return count, err
}

// encodeTokens gives the ids of the first `limit` tokens.
func (c *Core) encodeTokens(vocabulary int32, text []byte, limit int) (ids []uint32, err error) {
	c.scratch(func() {
		address, out := c.put(text), c.alloc(limit*4+16)
		var count int32
		count, err = c.check(c.call("tokens_encode", vocabulary, address, int32(len(text)), out, int32(limit)))
		for i := range uint32(min(int(count), limit)) {
			ids = append(ids, uint32(c.word(out+i*4)))
		}
	})
	return ids, err
}
