/** Servers that keep sealed answers for several proxies. */
import { answerFormat } from '../../../../ground/model/answer-values.ts'
import type { RespClient } from './resp-client.ts'

/** `too_large`: the server does not take values of this size. */
type SetResult = 'stored' | 'too_large' | 'failed'

/** A server with sealed values. It never rejects. */
export interface SharedValues {
  /** Resolves to null if there is no value, and to undefined if the server has failed. */
  get(name: string): Promise<string | null | undefined>
  set(name: string, value: string, ttlMs: number): Promise<SetResult>
}

const nameOf = (name: string): string => `sluice:answer:${answerFormat}:${name}`

export const redisValues = (client: RespClient): SharedValues => ({
  async get(name) {
    const reply = await client.send('GET', nameOf(name))
    return reply ? reply.toString('latin1') : reply
  },
  set: async (name, value, ttlMs) =>
    (await client.send('SET', nameOf(name), value, 'PX', `${ttlMs}`)) === undefined
      ? 'failed'
      : 'stored',
})

type Result = SetResult | 'found' | 'missing'

const counts = new Map<string, { readonly labels: readonly string[]; count: number }>()

/** Counts a request to a server and its result, for the metrics of this thread. */
export function countStore(operation: 'get' | 'set', result: Result): void {
  const key = `${operation} ${result}`
  const known = counts.get(key)
  if (known === undefined) counts.set(key, { labels: [operation, result], count: 1 })
  else known.count++
}

export const storeCounts = () =>
  [...counts.values()].map(({ labels, count }) => ({ labels, values: [count] }))
