import { afterAll, describe, expect, it } from 'vitest'
import {
  compileGuards,
  compileMask,
  type Guards,
  type Mask,
  type MaskRule,
} from '../../../src/engines/core/index.ts'
import { clientFormats } from '../../../src/engines/messages/formats/index.ts'
import type { JsonObject } from '../../../src/engines/messages/json/json.ts'
import { LlmError } from '../../../src/engines/messages/llm-error.ts'
import { maskTexts } from '../../../src/engines/messages/mask/parts-masker.ts'
import { needPlainKeys } from '../../../src/engines/messages/mask/plain-keys.ts'
import { mapRepeatedTexts } from '../../../src/engines/messages/mask/repeated-texts.ts'
import { mapRequestTexts, mapResponseTexts } from '../../../src/engines/messages/mask/texts.ts'
import { answerOf, type Format, hasUnreadable, Random, requestOf } from './messages.ts'

const chain: readonly (readonly MaskRule[])[] = [
  [
    { pattern: 'sécret-[0-9]+', replacement: '<masked>' },
    { builtin: 'Email', replacement: '<EMAIL_ADDRESS>' },
    { pattern: '^ab$', replacement: '' },
  ],
  [
    { builtin: 'CreditCard', replacement: '<CREDIT "CARD">' },
    { pattern: 'EMAIL_', replacement: 'E\n' },
  ],
]

function guardsOf(rules: readonly (readonly MaskRule[])[]): Guards {
  const outcome = compileGuards(rules.map((one) => ({ rules: one })))
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.guards
}

function maskOf(rules: readonly MaskRule[]): Mask {
  const outcome = compileMask(rules)
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.mask
}

const guards = guardsOf(chain)
const masks = chain.map(maskOf)

afterAll(() => {
  guards.dispose()
  for (const mask of masks) mask.dispose()
})

/** The message as the guards of the gateway leave it. */
function expected(format: Format, message: 'request' | 'answer', body: JsonObject): JsonObject {
  return masks.reduce((current, mask) => {
    const map = (texts: readonly string[]) => maskTexts(mask, texts).texts
    if (message === 'request') return mapRequestTexts(current, map)
    const repeated = mapRepeatedTexts(current, map)
    return format === 'Embeddings'
      ? repeated
      : mapResponseTexts(repeated, clientFormats[format].texts, map)
  }, body)
}

/** Writes JSON in which letters are escaped that need no escape. */
const escaped = (body: unknown): string =>
  JSON.stringify(body).replace(
    /[^ -~]|[@b]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Half surrogate pairs become U+FFFD on the way through UTF-8. */
const wellFormed = (body: unknown): unknown =>
  JSON.parse(JSON.stringify(body), (_, value) =>
    typeof value === 'string' ? value.toWellFormed() : value,
  )

function rewrite(format: Format, message: 'request' | 'answer', text: string, cuts: number[]) {
  const rewriter = guards.rewriter({ format, message, limit: 1 << 20 })
  const bytes = Buffer.from(text)
  const out: Uint8Array[] = []
  let at = 0
  for (const cut of cuts) {
    out.push(rewriter.push(bytes.subarray(at, cut)))
    at = cut
  }
  out.push(rewriter.end(bytes.subarray(at)))
  const { details } = rewriter
  rewriter.dispose()
  return { text: Buffer.concat(out).toString(), details }
}

/** Does the gateway refuse the request, because guards cannot read all of it? */
function isRefused(body: JsonObject): boolean {
  try {
    needPlainKeys(body)
    return false
  } catch (error) {
    expect(error).toBeInstanceOf(LlmError)
    return true
  }
}

const formats = ['Completions', 'Messages', 'Responses', 'Embeddings'] as const

describe.each(formats)('the rewriter of texts in the format %s', (format) => {
  it.each(['request', 'answer'] as const)('masks a whole %s as the gateway does', (message) => {
    let compared = 0
    for (let seed = 1; seed <= 400; seed++) {
      const random = new Random(seed)
      const body = (message === 'request' ? requestOf : answerOf)(format, random)
      if (message === 'request' && isRefused(body as JsonObject)) {
        expect(() => rewrite(format, message, JSON.stringify(body), []), `seed ${seed}`).toThrow(
          'TEXTS_',
        )
        continue
      }
      if (message === 'answer' && hasUnreadable(body)) continue
      compared++
      const masked = wellFormed(expected(format, message, body as JsonObject))
      for (const text of [JSON.stringify(body), JSON.stringify(body, null, 1), escaped(body)]) {
        const whole = rewrite(format, message, text, [])
        expect(wellFormed(JSON.parse(whole.text)), `seed ${seed}: ${text}`).toEqual(masked)
        const size = Buffer.byteLength(text)
        const cuts = [random.below(size), random.below(size)].sort((a, b) => a - b)
        expect(rewrite(format, message, text, cuts).text, `seed ${seed}`).toBe(whole.text)
      }
    }
    expect(compared).toBeGreaterThan(100)
  })
})
