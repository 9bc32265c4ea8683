import { describe, it } from 'vitest'
import fc from '../support/fast-check.ts'
import { useFixture } from '../support/fixture.ts'
import { type FramingCase, framingCases } from './framing-cases.ts'
import { startFramingScene } from './framing-scene.ts'

const scene = useFixture(startFramingScene)

const plain: FramingCase = {
  client: '1.1',
  method: 'GET',
  upstream: '1.1',
  status: 200,
  answer: 'hello',
  framing: 'length',
}
const statuses = [200, 204, 205, 304]

describe.each<FramingCase['client']>(['1.0', '1.0 kept', '1.1', '2'])(
  'a client of HTTP/%s',
  (client) => {
    it.each<[string, FramingCase['upstream']]>([
      ['GET', '1.1'],
      ['HEAD', '1.1'],
      ['POST', '2'],
    ])(
      'reads the answer to %s of an HTTP/%s upstream correctly, and the next one',
      async (method, upstream) => {
        for (const status of statuses) {
          for (const newStatus of [undefined, ...statuses]) {
            for (const newAnswer of [undefined, '', 'other']) {
              const changed = { by: 'transformation', newStatus, newAnswer } as const
              await scene.check({ ...plain, client, upstream, method, status, ...changed })
            }
          }
        }
      },
    )
  },
)

it.each<[string, Partial<FramingCase>]>([
  ['a processor that changes the status', { by: 'extProc', newStatus: 200, status: 304 }],
  ['a processor that replaces the body of 304', { by: 'extProc', newAnswer: 'evil', status: 304 }],
  ['an immediate response of a processor', { by: 'immediate', newStatus: 304, newAnswer: 'evil' }],
  ['a direct response that may have no body', { by: 'direct', newStatus: 205, newAnswer: 'evil' }],
  ['GET that is forwarded as HEAD', { newMethod: 'HEAD' }],
  [
    'GET that is forwarded as HEAD and gets a body',
    { newMethod: 'HEAD', by: 'transformation', newAnswer: 'other' },
  ],
  ['HEAD that is forwarded as GET', { method: 'HEAD', newMethod: 'GET', framing: 'chunked' }],
  ['a request that is forwarded as TRACE', { body: 'hello', newMethod: 'TRACE' }],
  ['a TRACE that gets a body', { newMethod: 'TRACE', newBody: 'evil' }],
  ['a request that cannot become CONNECT', { newMethod: 'CONNECT' }],
  ['a GET that gets a body', { newBody: 'other' }],
  ['a GET that gets a body, with a mirror', { newBody: 'other', changes: ['mirror'] }],
  ['a body that is removed', { method: 'POST', body: 'hello', isChunked: true, newBody: '' }],
  [
    'an upgrade that gets a body',
    { asksUpgrade: true, newBody: 'GET /evil HTTP/1.1 ', status: 403 },
  ],
  [
    'a 101 that is changed to another response',
    { asksUpgrade: true, status: 101, by: 'transformation', newStatus: 403, newAnswer: 'no' },
  ],
  [
    'fields that frame messages, set and removed by filters',
    { changes: ['set-length', 'set-coding', 'set-connection', 'remove-length'] },
  ],
  ['an empty answer of HTTP/2 without a length', { upstream: '2', answer: '', framing: 'close' }],
])('frames %s', async (_title, fields) => {
  for (const client of ['1.1', '2'] as const) {
    if (client === '2' && fields.asksUpgrade === true) continue
    await scene.check({ ...plain, client, ...fields })
  }
})

it('frames every message by its final status, method and body, on both sides', async () => {
  await fc.assert(
    fc.asyncProperty(framingCases, (one) => scene.check(one)),
    { numRuns: 250, seed: 9_112 },
  )
})
