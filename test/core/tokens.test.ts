import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  CoreInstance,
  countTokens,
  countTokensForModel,
  ERROR_ARGUMENT,
  encodeTokens,
  encodingForModel,
  TOKENS_BAD_VOCABULARY,
} from '../../src/engines/core/index.ts'

const dist = join(import.meta.dirname, '..', '..', 'dist')
const vocabulary = brotliDecompressSync(readFileSync(join(dist, 'cl100k_base.tokens.br')))
const encodings = ['o200k_base', 'cl100k_base'] as const

function load(core: CoreInstance, file: Uint8Array): number {
  const address = core.allocate(file.length + 16)
  core.bytes.set(file, address)
  const handle = core.run('tokens_load', (exports) => exports.tokens_load(address, file.length))
  core.free(address)
  return handle
}

/** A text in an instance, between bytes that must not change. */
function place(core: CoreInstance, text: Uint8Array): number {
  const address = core.allocate(text.length + 64) + 32
  core.bytes.fill(0x61, address - 32, address + text.length + 32)
  core.bytes.set(text, address)
  return address
}

describe('tokens_adopt', () => {
  const image = readFileSync(join(dist, 'cl100k_base.tokens.image'))

  function adopt(core: CoreInstance, content: Uint8Array): number {
    const block = core.allocate(content.length)
    core.bytes.set(content, block)
    return core.run('tokens_adopt', (exports) => exports.tokens_adopt(block, content.length))
  }

  it('loads the image of a vocabulary at any address', () => {
    const core = new CoreInstance()
    const text = Buffer.from('The 世界 of 👩‍💻 unbelievableness and more')
    const address = place(core, text)
    const handles = [adopt(core, image), load(core, vocabulary), adopt(core, image)]
    const counts = handles.map((handle) => core.exports.tokens_count(handle, address, text.length))
    expect(counts).toEqual(handles.map(() => countTokens(text, 'cl100k_base')))
  })

  it('gives an image that loads again', () => {
    const core = new CoreInstance()
    const at = core.exports.tokens_image(load(core, vocabulary))
    const size = core.words[(at >> 2) + 2] ?? 0
    expect(adopt(core, Buffer.from(core.bytes.subarray(at, at + size)))).toBe(2)
    expect(core.exports.tokens_image(3)).toBe(0)
  })

  it('rejects an image of another layout, one that was cut, and what is no block', () => {
    const core = new CoreInstance()
    const other = Buffer.from(image)
    other[3] = (other[3] ?? 0) + 1
    expect(adopt(core, other)).toBe(TOKENS_BAD_VOCABULARY)
    expect(adopt(core, image.subarray(0, image.length - 1))).toBe(TOKENS_BAD_VOCABULARY)
    expect(adopt(core, image.subarray(0, 16))).toBe(ERROR_ARGUMENT)
    expect(core.exports.tokens_adopt(0, image.length)).toBe(ERROR_ARGUMENT)
  })
})

describe('countTokens', () => {
  it('counts no tokens in an empty text', () => {
    for (const encoding of encodings) {
      expect(countTokens('', encoding)).toBe(0)
      expect(countTokens(new Uint8Array(), encoding)).toBe(0)
      expect(encodeTokens('', encoding)).toEqual(new Uint32Array())
    }
  })

  it('counts a string and its UTF-8 bytes alike', () => {
    const text = "Größe 你好 👍🏽 don't"
    for (const encoding of encodings) {
      expect(countTokens(Buffer.from(text), encoding)).toBe(countTokens(text, encoding))
      expect(encodeTokens(Buffer.from(text), encoding)).toEqual(encodeTokens(text, encoding))
    }
  })

  it('reads special tokens as plain text unless asked to encode them', () => {
    const text = 'a<|endoftext|>b<|fim_prefix|><|none|>'
    const asTokens = { specialTokens: 'token' } as const
    const [a, b, rest] = ['a', 'b', '<|none|>'].map((part) => [
      ...encodeTokens(part, 'cl100k_base'),
    ])
    expect([...encodeTokens(text, 'cl100k_base', asTokens)]).toEqual([
      ...[...(a ?? []), 100257],
      ...[...(b ?? []), 100258],
      ...(rest ?? []),
    ])
    expect(countTokens(text, 'cl100k_base', asTokens)).toBe(4 + (rest ?? []).length)
    expect([...encodeTokens(text, 'cl100k_base')]).not.toContain(100257)
    expect(encodeTokens('<|endoftext|>', 'o200k_base', asTokens)).toEqual(Uint32Array.of(199999))
    // No special token of o200k_base.
    expect(countTokens('<|fim_prefix|>', 'o200k_base', asTokens)).toBeGreaterThan(1)
  })
})

describe('encodingForModel', () => {
  it.each([
    ['gpt-4o', 'o200k_base'],
    ['gpt-4o-mini-2024-07-18', 'o200k_base'],
    ['OpenAI/GPT-4.1-nano', 'o200k_base'],
    ['gpt-5', 'o200k_base'],
    ['gpt-5.1-codex', 'o200k_base'],
    ['o1', 'o200k_base'],
    ['o3-mini', 'o200k_base'],
    ['o4-mini', 'o200k_base'],
    ['ft:gpt-4o-mini-2024-07-18:org::abc', 'o200k_base'],
    ['gpt-oss-120b', 'o200k_base'],
    ['gpt-4', 'cl100k_base'],
    ['gpt-4-turbo', 'cl100k_base'],
    ['gpt-4-32k-0613', 'cl100k_base'],
    ['gpt-3.5-turbo', 'cl100k_base'],
    ['gpt-35-turbo-16k', 'cl100k_base'],
    ['text-embedding-3-large', 'cl100k_base'],
    ['text-embedding-ada-002', 'cl100k_base'],
  ])('returns an exact encoding for %s: %s', (model, encoding) => {
    expect(encodingForModel(model)).toEqual({ encoding, exact: true, factor: 1 })
  })

  it.each(['claude-sonnet-4-5', 'us.anthropic.claude-3-haiku-20240307-v1:0', 'gemini-2.5-pro', ''])(
    'returns an estimate for %j',
    (model) => {
      const { exact, factor } = encodingForModel(model)
      expect(exact).toBe(false)
      expect(factor).toBeGreaterThan(1)
    },
  )

  it('does not confuse a model with another whose name it starts with', () => {
    for (const model of ['gpt-4oo', 'o100', 'gpt-50', 'gpt-40']) {
      expect(encodingForModel(model).exact, model).toBe(false)
    }
  })

  it('rounds estimated counts up', () => {
    const text = 'one two three'
    const exact = countTokens(text, 'o200k_base')
    expect(countTokensForModel(text, 'gpt-4o')).toEqual({ tokens: exact, exact: true })
    expect(countTokensForModel(text, 'claude-3-opus')).toEqual({
      tokens: Math.ceil(exact * encodingForModel('claude-3-opus').factor),
      exact: false,
    })
    expect(countTokensForModel('', 'claude-3-opus').tokens).toBe(0)
  })
})

describe('the token functions of the core', () => {
  const core = new CoreInstance()
  const handle = load(core, vocabulary)

  it('change no byte around a text, and read none', () => {
    const text = Buffer.from("It's 12 apples and 3 pears '")
    const address = place(core, text)
    const before = Buffer.from(core.bytes.subarray(address - 32, address + text.length + 32))
    const count = core.exports.tokens_count(handle, address, text.length)
    expect(count).toBe(countTokens(text, 'cl100k_base'))
    expect(core.bytes.subarray(address - 32, address + text.length + 32)).toEqual(before)
  })

  it('keep the allocator intact if the header of one of its blocks follows the text', () => {
    const own = new CoreInstance()
    const other = load(own, vocabulary)
    // The workspace for long pieces uses this block, whose header directly follows the text.
    const text = own.allocate(1008)
    const behind = own.allocate(22_592)
    expect(behind - text).toBe(1024)
    own.free(behind)
    own.bytes.fill(0x61, text, text + 1008)
    const count = (length: number) => own.exports.tokens_count(other, text, length)
    const wanted = countTokens('a'.repeat(1008), 'cl100k_base')
    expect([count(1008), count(1008)]).toEqual([wanted, wanted])
    // It is in use: neither freed by name nor given out again.
    expect(own.allocate(22_592)).not.toBe(behind)
    const state = own.bytes.readUInt32LE(behind - 12)
    expect(own.bytes.readUInt32LE(own.allocate(16) - 12)).toBe(state)
  })

  it('write no more ids than fit, and return how many there are', () => {
    const text = Buffer.from('one two three four')
    const address = place(core, text)
    const out = core.allocate(64)
    core.words.fill(-1, out >> 2, (out >> 2) + 16)
    expect(core.exports.tokens_encode(handle, address, text.length, out, 2)).toBe(4)
    const wanted = [...encodeTokens('one two', 'cl100k_base'), -1]
    expect([...core.words.subarray(out >> 2, (out >> 2) + 3)]).toEqual(wanted)
    expect(core.exports.tokens_encode(handle, address, text.length, out, 0)).toBe(4)
  })

  it('refuse spans outside memory, overlapping buffers and invalid handles', () => {
    const { exports, bytes } = core
    const address = place(core, Buffer.from('abc'))
    expect(exports.tokens_count(0, address, 3)).toBe(ERROR_ARGUMENT)
    expect(exports.tokens_count(99, address, 3)).toBe(ERROR_ARGUMENT)
    expect(exports.tokens_count(-1, address, 3)).toBe(ERROR_ARGUMENT)
    expect(exports.tokens_count(handle, address, -1)).toBe(ERROR_ARGUMENT)
    expect(exports.tokens_count(handle, bytes.length - 8, 3)).toBe(ERROR_ARGUMENT)
    expect(exports.tokens_count(handle, 0xfffffff0, 3)).toBe(ERROR_ARGUMENT)
    expect(exports.tokens_encode(handle, address, 3, address + 16, 4)).toBe(ERROR_ARGUMENT)
    expect(exports.tokens_encode(handle, address, 3, bytes.length, 4)).toBe(ERROR_ARGUMENT)
    expect(exports.tokens_load(bytes.length, 300)).toBe(ERROR_ARGUMENT)
    expect(exports.tokens_free(99)).toBe(ERROR_ARGUMENT)
  })

  it('refuse a vocabulary that is truncated, of another format or inconsistent', () => {
    const changed = (at: number, value: number) => {
      const copy = Buffer.from(vocabulary)
      copy[at] = value
      return copy
    }
    const later = (vocabulary.length - 272) / 6
    const wrong = {
      empty: new Uint8Array(),
      cut: vocabulary.subarray(0, -1),
      magic: changed(0, 0),
      version: changed(4, 2),
      pattern: changed(8, 3),
      count: changed(12, 0),
      'a byte twice': changed(17, vocabulary[16] ?? 0),
      'a later token': changed(272 + 2 * later, 3),
    }
    for (const [name, file] of Object.entries(wrong)) {
      expect(load(core, file), name).toBe(TOKENS_BAD_VOCABULARY)
    }
  })

  it('refuse or load a vocabulary with random changes, and never trap when they count with it', () => {
    const own = new CoreInstance()
    const address = place(own, Buffer.from('a bc deé \u4e2d\u{1f600}'.repeat(200)))
    for (let seed = 1; seed <= 12; seed++) {
      const file = Buffer.from(vocabulary)
      for (let i = 0; i < seed; i++) file[(seed * 7_919 * (i + 1)) % file.length] = seed * 31 * i
      const other = load(own, file)
      if (other < 0) {
        expect(other).toBe(TOKENS_BAD_VOCABULARY)
        continue
      }
      expect(own.exports.tokens_count(other, address, 2000)).toBeGreaterThan(0)
      expect(own.exports.tokens_free(other)).toBe(0)
    }
  })

  it('load at most eight vocabularies, and can load another once one is freed', () => {
    const own = new CoreInstance()
    const handles = Array.from({ length: 8 }, () => load(own, vocabulary))
    expect(new Set(handles).size).toBe(8)
    expect(load(own, vocabulary)).toBeLessThan(0)
    const address = place(own, Buffer.from('hello'))
    const pages = own.bytes.length
    expect(own.exports.tokens_free(handles[3] ?? 0)).toBe(0)
    expect(own.exports.tokens_count(handles[3] ?? 0, address, 5)).toBe(ERROR_ARGUMENT)
    expect(load(own, vocabulary)).toBe(handles[3])
    expect(own.bytes.length).toBe(pages)
  })
})

describe('counting the tokens of long texts', () => {
  const core = new CoreInstance()
  const handle = load(core, vocabulary)
  const size = 10_000_000
  const address = core.allocate(size + 16)

  /** Units of work for the first `length` bytes, and their tokens. */
  function measure(length: number) {
    const before = core.exports.tokens_work()
    const count = core.run('tokens_count', (exports) =>
      exports.tokens_count(handle, address, length),
    )
    return { count, work: core.exports.tokens_work() - before }
  }

  /** The work for `bytes` bytes must be about a hundred times that for a hundredth of them. */
  function expectLinear(shape: string | Uint8Array, bytes: number): void {
    const unit = Buffer.from(shape)
    core.bytes.fill(unit, address, address + bytes)
    const small = measure(unit.length * Math.floor(bytes / 100 / unit.length))
    const large = measure(unit.length * Math.floor(bytes / unit.length))
    expect(small.count).toBeGreaterThan(0)
    expect(large.count).toBeGreaterThan(small.count * 90)
    expect(large.work).toBeLessThan(small.work * 110)
  }

  it.each([
    ['one letter', 'a'],
    ['one word', 'antidisestablishmentarianism'],
  ])('takes time in proportion to the length of 10 MB of %s', (_, shape) => {
    expectLinear(shape, size)
  })

  it.each([
    ['one character of three bytes', '的'],
    ['letters of which no two merge', 'qxzj'],
    ['spaces', ' '],
    ['line ends', '\r\n'],
    ['digits', '0123456789'],
    ['at signs', '@'],
    ['marks on capitals', 'A\u0301B'],
    ['contractions', "'s'T'll"],
    ['bytes that are not UTF-8', Uint8Array.of(0xff)],
  ])('takes time in proportion to the length of 2 MB of %s', (_, shape) => {
    expectLinear(shape, 2_000_000)
  })

  it('needs no more memory for a long word than for a window of it', () => {
    core.bytes.fill('ab', address, address + size)
    const before = core.bytes.length
    expect(measure(size).count).toBeGreaterThan(0)
    expect(core.bytes.length - before).toBeLessThan(1 << 20)
  })
})
