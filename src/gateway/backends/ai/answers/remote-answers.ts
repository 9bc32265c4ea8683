/**
 * Answers on a server that several proxies share, with those in memory before it. They are sealed with the key of the
 * proxies: a reader of the server learns neither answers nor requests, and a writer cannot forge an answer. If the server
 * cannot be reached, only the memory serves answers.
 */
import { createHmac, hkdfSync } from 'node:crypto'
import { isObject, parseJson } from '../../../../engines/messages/json/json.ts'
import { Seal } from '../../../../ground/secrets/seal.ts'
import { type AnswerMemory, type AnswerStore, isFresh, type StoredAnswer } from './answer-memory.ts'
import { countStore, type SharedValues } from './shared-values.ts'

const purpose = 'sluice stored answers'
const lineBreak = 0x0a

interface Keys {
  readonly secret: Uint8Array
  readonly seal: Seal
  readonly names: Uint8Array
}

export class RemoteAnswers implements AnswerStore {
  readonly #memory: AnswerMemory
  readonly #values: SharedValues
  readonly #secret: () => Uint8Array | undefined
  #keys: Keys | undefined

  /** `secret` returns the key that all proxies share; undefined until it has arrived. */
  constructor(memory: AnswerMemory, values: SharedValues, secret: () => Uint8Array | undefined) {
    this.#memory = memory
    this.#values = values
    this.#secret = secret
  }

  find(key: string): StoredAnswer | undefined | Promise<StoredAnswer | undefined> {
    const keys = this.#currentKeys()
    return this.#memory.find(key) ?? (keys && this.#fetch(key, keys))
  }

  store(answer: StoredAnswer): void {
    this.#memory.store(answer)
    const keys = this.#currentKeys()
    if (keys === undefined || answer.body.length > this.#memory.maxBody) return
    const { key, body, cost, ...metadata } = answer
    const head = JSON.stringify({ ...metadata, cost: cost?.toString() })
    const sealed = keys.seal.seal(Buffer.concat([Buffer.from(`${head}\n`), body]), key)
    const ttl = Math.max(1, answer.expiresAt - Date.now())
    void this.#values
      .set(nameOf(key, keys), sealed, ttl)
      .then((result) => countStore('set', result))
  }

  async #fetch(key: string, keys: Keys): Promise<StoredAnswer | undefined> {
    const sealed = await this.#values.get(nameOf(key, keys))
    const plain = sealed ? keys.seal.open(sealed, key) : undefined
    const found = plain && readAnswer(key, plain)
    const isFound = found !== undefined && isFresh(found, Date.now())
    countStore('get', isFound ? 'found' : sealed === undefined ? 'failed' : 'missing')
    if (!isFound) return undefined
    this.#memory.store(found)
    return found
  }

  #currentKeys(): Keys | undefined {
    const secret = this.#secret()
    if (secret === undefined) return undefined
    if (this.#keys?.secret !== secret) {
      const names = new Uint8Array(hkdfSync('sha256', secret, '', `${purpose}: names`, 32))
      this.#keys = { secret, seal: new Seal(purpose, secret), names }
    }
    return this.#keys
  }
}

/** With a plain digest, a reader of the server could check guesses of requests. */
const nameOf = (key: string, { names }: Keys): string =>
  createHmac('sha256', names).update(key).digest('base64url')

/** Returns undefined if the text is of another version. */
function readAnswer(key: string, plain: Buffer): StoredAnswer | undefined {
  const end = plain.indexOf(lineBreak)
  const head = end < 0 ? undefined : parseJson(plain.toString('utf8', 0, end))
  if (!isObject(head)) return undefined
  const { contentType, model, cost, storedAt, expiresAt } = head
  if (typeof contentType !== 'string' || typeof expiresAt !== 'number') return undefined
  return {
    key,
    contentType,
    body: plain.subarray(end + 1),
    model: typeof model === 'string' ? model : undefined,
    cost: typeof cost === 'string' ? BigInt(cost) : undefined,
    // The clock of the proxy that has stored it may be ahead.
    storedAt: Math.min(Number(storedAt), Date.now()),
    expiresAt,
  }
}
