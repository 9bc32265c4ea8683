import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { get_encoding } from 'tiktoken'
import { describe, expect, it } from 'vitest'
import { countTokens, encodeTokens } from '../../src/engines/core/index.ts'
import { bytesOfCase, type CaseText, readCaseFiles, stringOfCase } from './case-files.ts'

interface TokenCase extends CaseText {
  readonly title: string
  readonly encoding: string
  readonly count: number
  readonly ids?: readonly number[]
}

// The same ids as tiktoken, from the same text, in every case. SLUICE_FUZZ_SECONDS makes the random
// tests run that long each, from a new seed.
const root = join(import.meta.dirname, '..', '..')
const seconds = Number(process.env.SLUICE_FUZZ_SECONDS ?? 0)
const texts: string[] = JSON.parse(
  readFileSync(join(import.meta.dirname, 'tokens', 'texts.json'), 'utf8'),
)

/** Numbers below a bound. */
function sequence(seed: number): (bound: number) => number {
  let state = seed
  return (bound) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % bound
  }
}

/** Runs a case `cases` times from a fixed seed, or for as long as was asked for. */
function repeat(cases: number, run: (next: (bound: number) => number) => void): void {
  const seed = seconds > 0 ? Date.now() & 0x7fffffff : 20_241
  console.log(`seed ${seed}`)
  const next = sequence(seed)
  const end = Date.now() + seconds * 1000
  for (let i = 0; seconds > 0 ? Date.now() < end : i < cases; i++) run(next)
}

const isScalar = (point: number) => point < 0xd800 || point > 0xdfff

describe.each(['o200k_base', 'cl100k_base'] as const)(
  'tokens of %s, compared with tiktoken',
  (encoding) => {
    const oracle = get_encoding(encoding)
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    const size = encoding === 'o200k_base' ? 199_998 : 100_256
    const words = Array.from({ length: size }, (_, id) =>
      decoder.decode(oracle.decode_single_token_bytes(id)),
    )

    /** Compares quickly; prints all tokens only if they differ. */
    function check(text: string, input: string | Uint8Array = text): void {
      const wanted = oracle.encode_ordinary(text)
      const ids = encodeTokens(input, encoding)
      const isSame = ids.length === wanted.length && ids.every((id, i) => id === wanted[i])
      if (!isSame) expect([...ids], JSON.stringify(text)).toEqual([...wanted])
      const count = countTokens(input, encoding)
      if (count !== wanted.length) expect(count, JSON.stringify(text)).toBe(wanted.length)
    }

    it('are the same for every code point, whatever its neighbours', () => {
      let text = ''
      for (let point = 0; point < 0x110000; point++) {
        if (!isScalar(point)) continue
        const character = String.fromCodePoint(point)
        // From 0x20000 on there are only ideographs, tags, selectors and private use.
        text +=
          point < 0x20000
            ? `${character}A${character}b ${character}'s1${character}23 `
            : `${character}'s`
        if (text.length < 2000 && point < 0x10ffff) continue
        check(text)
        text = ''
      }
    })

    it('are the same in tiktoken, in our encoder and in the case files', () => {
      const files = readCaseFiles<TokenCase>('tokens/cases')
      const cases = files.flatMap((file) => file.cases).filter((each) => each.encoding === encoding)
      // The oracle's time grows with the square of a word; its counts of longer words are recorded.
      const short = cases.filter((example) => bytesOfCase(example).length <= 20_000)
      expect(short.length).toBeGreaterThan(30)
      for (const example of short) {
        const bytes = bytesOfCase(example)
        const ids = oracle.encode_ordinary(decoder.decode(bytes))
        expect(ids.length, example.title).toBe(example.count)
        if (example.ids !== undefined) expect([...ids], example.title).toEqual(example.ids)
        check(decoder.decode(bytes), bytes)
        const string = stringOfCase(example)
        if (string !== undefined) check(string.toWellFormed(), string)
      }
    })

    it('are the same for every entry of the vocabulary', () => {
      for (const word of words) check(word)
    })

    it('are the same for texts of many scripts and for source code', () => {
      for (const text of texts) for (const part of [text, ` ${text}`, text.repeat(9)]) check(part)
      const sources = globSync(['src/engines/core/*.ts', 'assembly/**/*.ts', 'docs/**/*.md'], {
        cwd: root,
      })
      expect(sources.length).toBeGreaterThan(20)
      for (const file of sources) check(readFileSync(join(root, file), 'utf8').slice(0, 20_000))
    })

    it('are the same for random sequences of vocabulary entries', () => {
      repeat(12_000, (next) => {
        const range = next(3) === 0 ? size : 5000
        check(Array.from({ length: 1 + next(8) }, () => words[next(range)]).join(''))
      })
    })

    it('are the same for random texts of small alphabets, short and long', () => {
      const alphabets = [
        ["aA1 '\n\r\t!/.s\u0301\u00e9\u4e2d\u017f\u01c5\u02b0", 40],
        ["'sStTdDmMlLrReEvV\u017f x", 40],
        ['ab', 600],
        ['e', 900],
        [' \n\r\ta', 60],
        ['你好的一是', 300],
        ['😀👍\u200d\ufe0f❤🏽', 200],
        ['=-*/ ', 400],
      ] as const
      repeat(6000, (next) => {
        const [alphabet, longest] = alphabets[next(alphabets.length)] ?? ['', 1]
        const characters = [...alphabet]
        const length = 1 + next(next(20) === 0 ? longest * 3 : longest / 10)
        check(Array.from({ length }, () => characters[next(characters.length)]).join(''))
      })
    })

    it('are the same for words of thousands of bytes', () => {
      const parts = words.slice(256, 20_000).filter((word) => /^[a-z]+$/.test(word))
      for (const part of ['a', 'ab', 'ha', '的', 'д', '=', '😀'])
        check(part.repeat(6000 / part.length))
      repeat(12, (next) => {
        const alphabet = [
          parts[next(parts.length)] ?? '',
          parts[next(parts.length)] ?? '',
          'a',
          'e',
        ]
        let text = ''
        while (text.length < 10_000) {
          text += next(2) === 0 ? alphabet[next(4)] : parts[next(parts.length)]
        }
        check(text)
      })
    })

    it('are the same for invalid UTF-8, which is read as U+FFFD', () => {
      const bytes = [
        0x61, 0x20, 0x80, 0xbf, 0xc1, 0xc3, 0xe0, 0xa0, 0xed, 0xef, 0xbb, 0xf0, 0x90, 0xf4, 0xff,
      ]
      repeat(4000, (next) => {
        const input = Uint8Array.from({ length: next(24) }, () => bytes[next(bytes.length)] ?? 0)
        check(decoder.decode(input), input)
      })
    })

    it('are the same for lone surrogates, which are read as U+FFFD', () => {
      for (const text of ['\ud800', 'a\udfffb', '\udc00\ud800', '\ud83d \ude00']) {
        check(text.toWellFormed(), text)
        check(text)
      }
    })
  },
)
