/** Requests, answers and what policies make of both, in every combination. */
import fc from '../support/fast-check.ts'

export const changes = [
  'set-length',
  'set-coding',
  'set-connection',
  'remove-length',
  'mirror',
] as const

/** One request, what answers it, and what is done to both. */
export interface FramingCase {
  readonly client: '1.0' | '1.0 kept' | '1.1' | '2'
  readonly method: string
  /** Undefined: without a body. */
  readonly body?: string | undefined
  readonly isChunked?: boolean
  readonly asksUpgrade?: boolean
  readonly upstream: '1.1' | '2'
  readonly status: number
  readonly answer: string
  readonly framing: 'length' | 'chunked' | 'close'
  readonly hasInterim?: boolean
  /** What a transformation makes of the request. */
  readonly newMethod?: string | undefined
  readonly newBody?: string | undefined
  /** What makes another response of it. */
  readonly by?: 'transformation' | 'extProc' | 'immediate' | 'direct'
  readonly newStatus?: number | undefined
  readonly newAnswer?: string | undefined
  readonly changes?: readonly (typeof changes)[number][]
}

const texts = [
  '',
  'x',
  'hello',
  'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil',
  'long'.repeat(50),
]
// Expressions hold them as literals, in one line.
const literals = ['', 'x', 'other', 'HTTP/1.1 200 OK Content-Length: 4 evil', 'more'.repeat(50)]
const statuses = [200, 204, 205, 206, 304, 404, 500]
const maybe = <Value>(values: readonly Value[]) =>
  fc.option(fc.constantFrom(...values), { nil: undefined })

/** Cases of every kind; some parts go together only with others. */
export const framingCases: fc.Arbitrary<FramingCase> = fc
  .record({
    client: fc.constantFrom<FramingCase['client']>('1.0', '1.0 kept', '1.1', '1.1', '2', '2'),
    method: fc.constantFrom('GET', 'GET', 'HEAD', 'HEAD', 'POST', 'DELETE', 'OPTIONS', 'PROPFIND'),
    body: maybe(texts),
    isChunked: fc.boolean(),
    asksUpgrade: fc.boolean(),
    upstream: fc.constantFrom<FramingCase['upstream']>('1.1', '1.1', '2'),
    status: fc.constantFrom(...statuses, 101),
    answer: fc.constantFrom(...texts),
    framing: fc.constantFrom<FramingCase['framing']>('length', 'chunked', 'close'),
    hasInterim: fc.boolean(),
    newMethod: maybe(['GET', 'HEAD', 'POST', 'TRACE', 'CONNECT', 'DELETE']),
    newBody: maybe(literals),
    by: maybe<NonNullable<FramingCase['by']>>(['transformation', 'extProc', 'immediate', 'direct']),
    newStatus: maybe(statuses),
    newAnswer: maybe(literals),
    changes: fc.subarray([...changes]),
  })
  .map(({ by, status, asksUpgrade, ...one }) => {
    // A switch of protocols that stays one ends the requests of its connection.
    const asks = asksUpgrade && one.upstream === '1.1' && one.client === '1.1'
    const isSwitch = status === 101 && asks && one.body === undefined && one.newMethod === undefined
    const isChanged = by !== undefined && by !== 'direct' && one.newStatus !== undefined
    return {
      ...one,
      asksUpgrade: asks,
      status: status === 101 && !(isSwitch && isChanged) ? 200 : status,
      ...(by !== undefined && { by }),
    }
  })
