import assert from 'node:assert/strict'
import { CoreError, compileGuards, type Guards } from '../../../src/engines/core/index.ts'
import { answerOf, Random, requestOf } from '../../core/texts/messages.ts'
import { readSse, sse, streamOf } from '../../core/texts/streams.ts'
import { cuts } from '../support/pieces.ts'
import { defineTarget } from '../support/target.ts'

const formats = ['Completions', 'Messages', 'Responses'] as const
type Kind = 'request' | 'answer' | 'stream'

function guardsOf(): Guards {
  const outcome = compileGuards([
    {
      rules: [
        { pattern: 'sécret-[0-9]+', replacement: '<masked>' },
        { builtin: 'Email', replacement: '' },
      ],
    },
    { rules: [{ pattern: '<+', replacement: '"' }] },
  ])
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.guards
}

/** The output, or the name of the code. */
function rewrite(
  guards: Guards,
  format: (typeof formats)[number],
  message: Kind,
  pieces: readonly Buffer[],
) {
  const rewriter = guards.rewriter({ format, message, limit: 1 << 16 })
  try {
    const out = pieces.map((piece) => Buffer.from(rewriter.push(piece)))
    return Buffer.concat([...out, rewriter.end()]).toString()
  } catch (error) {
    if (error instanceof CoreError) return error.message
    throw error
  } finally {
    rewriter.dispose()
  }
}

const isRefused = (text: string) => text.startsWith('rewriting texts: ')

function samples(): string[] {
  return [1, 2, 3, 4].flatMap((seed) =>
    formats.flatMap((format) => {
      const random = new Random(seed)
      const stream = sse(streamOf(format, random), random)
      const documents = [requestOf(format, random), answerOf(format, random)]
      return [stream, ...documents.map((one) => JSON.stringify(one))]
    }),
  )
}

export default defineTarget({
  about: 'what is rewritten is JSON, and the same however the bytes are cut',
  samples: samples(),
  words: [
    '"text"',
    '"content"',
    '"type"',
    'data: ',
    '\n\n',
    '\\u00',
    '\\ud83d',
    '{',
    '}',
    '[',
    ']',
    ',',
  ],
  start: () => {
    const guards = guardsOf()
    return {
      check(input) {
        const all = cuts(input)
        for (const format of formats) {
          for (const message of ['request', 'answer', 'stream'] as const) {
            const [whole = '', ...others] = all.map((pieces) =>
              rewrite(guards, format, message, pieces),
            )
            for (const other of others) assert.equal(other, whole)
            if (isRefused(whole)) continue
            const parts = message === 'stream' ? readSse(whole).map(({ data }) => data) : [whole]
            for (const data of parts) if (data !== '' && data !== '[DONE]') JSON.parse(data)
          }
        }
      },
    }
  },
})
