import { type Exchange, next, type Verdict } from '../../../ground/exchange/exchange.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import { bufferBodies } from '../../variables/index.ts'
import { type Authorizer, bodyFor, failed, ServiceFailure } from './authorizer.ts'
import { CallerReader } from './caller.ts'
import type { ExtAuthConfig } from './config.ts'
import { changeFields, type FieldChange } from './field-changes.ts'
import { type Clock, VerdictCache } from './verdict-cache.ts'

const step = 'traffic.extAuth'

/** Authorizes requests over either protocol: reads the body, caches answers, and handles failures of the service. */
export class Authorization<Answer extends object> {
  readonly #config: ExtAuthConfig
  readonly #authorizer: Authorizer<Answer>
  readonly #cache: VerdictCache<Answer> | undefined
  /** Lower-case names of the headers that the service receives; all if undefined. */
  readonly #sent: ReadonlySet<string> | undefined
  /** Key in `extensions` under which changes for the response are stored. */
  readonly #extension: string

  constructor(
    config: ExtAuthConfig,
    authorizer: Authorizer<Answer>,
    sent: ReadonlySet<string> | undefined,
    extension: string,
    clock: Clock,
  ) {
    this.#config = config
    this.#authorizer = authorizer
    this.#cache = config.cache && new VerdictCache(config.cache, clock)
    this.#sent = sent
    this.#extension = extension
  }

  /** Decides about a request, and records the identity of the caller if the service allows it. */
  async decide(exchange: Exchange): Promise<Verdict> {
    const { maxBodyBytes, allowsPartialBody = false } = this.#config
    const body = await bodyFor(exchange, maxBodyBytes, allowsPartialBody)
    if (body !== undefined && 'kind' in body) return body
    await bufferBodies(exchange, this.#authorizer)
    if (this.#cache !== undefined) await bufferBodies(exchange, this.#cache)
    const caller = new CallerReader(exchange, this.#sent)
    const key = this.#cache?.keyOf(exchange, caller)
    const known = key === undefined ? undefined : this.#cache?.get(key)
    if (known !== undefined) addNote(exchange, step, 'the answer of the service was cached')
    const answer = known ?? (await this.#authorizer.ask(exchange, body))
    if (answer instanceof ServiceFailure) return this.#fail(exchange, answer)
    if ('kind' in answer) return answer
    const judgement = this.#authorizer.judge(exchange, answer)
    if (judgement instanceof ServiceFailure) return this.#fail(exchange, judgement)
    if (known === undefined && key !== undefined) this.#keep(key, answer, exchange)
    const { verdict, forResponse = [] } = judgement
    if (verdict.kind === 'respond') return verdict
    if (forResponse.length > 0) exchange.extensions.set(this.#extension, forResponse)
    const { learned, isOver } = exchange
    if (!isOver) learned.authorizedCaller = caller.read(exchange, learned.authorizedCaller)
    return next
  }

  #keep(key: string, answer: Answer, exchange: Exchange): void {
    if (exchange.isOver) return
    const bytes = this.#authorizer.sizeOf(answer)
    this.#cache?.put(key, answer, bytes, this.#authorizer.withAnswer(exchange, answer))
  }

  #fail(exchange: Exchange, { detail }: ServiceFailure): Verdict {
    if (this.#config.failsOpen !== true) return failed(detail)
    addNote(exchange, step, `continues without the service (FailOpen): ${detail}`)
    this.#authorizer.removeServiceHeaders(exchange)
    return next
  }

  /** Applies the stored changes to the response of an allowed request. */
  changeResponse({ extensions, response }: Exchange): void {
    const changes = extensions.get(this.#extension) as readonly FieldChange[] | undefined
    if (changes !== undefined && response !== undefined) changeFields(response.headers, changes)
  }
}

/** Returns changes for the response to the client. Cookies of the service are added to those of the upstream. */
export const forResponse = (changes: readonly FieldChange[]): readonly FieldChange[] =>
  changes.map((change) =>
    change.name.toLowerCase() === 'set-cookie' ? { ...change, action: 'append' as const } : change,
  )
