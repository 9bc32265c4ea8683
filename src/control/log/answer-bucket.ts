/** Sealed answers of models in a key-value bucket of a NATS server, for several proxies. */
import { type AnswerValues, answerFormat } from '../../ground/model/answer-values.ts'
import { NatsRecord } from './nats-record.ts'

const timeoutMs = 500
/** Maximum age of an entry in milliseconds, for servers without a TTL per entry (before 2.11). */
const lifeMs = 7 * 24 * 3_600_000
/** Size of the bucket, unless an operator has created it. The oldest answers are dropped first. */
const maxBytes = 256 * 1024 * 1024
/** Largest value in bytes: the default limit of a NATS message, less room for its headers. */
const maxValue = 1_000_000

const keyOf = (name: string): string => `${answerFormat}.${name}`

/** `servers` are addresses of servers of one cluster, separated by commas. Nothing is opened before the first call. */
export function openAnswerBucket(servers: string): AnswerValues {
  const options = { servers, bucket: 'sluice_answers', key: '', lifeMs, maxBytes }
  const bucket = new NatsRecord({ ...options, hasEntryTtl: true })
  return {
    get: async (name) => (await bucket.read(timeoutMs, keyOf(name)))?.text,
    async put(name, value, ttlMs) {
      if (value.length > maxValue) return false
      await bucket.put(value, timeoutMs, keyOf(name), ttlMs)
      return true
    },
    close: () => bucket.close(),
  }
}
