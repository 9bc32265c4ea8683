/** A guard that asks a service about the pieces of a message, several at once. */
import { parseDecision } from '../../../../engines/messages/json/json.ts'
import type { RoleText } from '../../../../engines/messages/mask/slot.ts'
import type { Exchange } from '../../../../ground/exchange/exchange.ts'
import type { ServiceConfig } from '../policy/config.ts'
import type { Answer, AskingGuard, Question } from './ask-guard.ts'
import { guardFailure, ruleNames } from './guard-call.ts'
import type { ServiceConnection } from './service-connection.ts'
import type { ServiceName } from './services/config.ts'
import { serviceOf } from './services/index.ts'
import type { GuardService, Part, Piece, Verdict } from './services/service.ts'
import { joinParts } from './services/split.ts'

/** Number of calls at once for one message. */
const maxCalls = 8

export class ServiceGuard implements AskingGuard {
  readonly type: ServiceName
  readonly masks: boolean
  readonly readsWindows: boolean
  readonly #service: GuardService<unknown>
  readonly #config: unknown
  readonly #connection: ServiceConnection

  constructor(
    { service, config, holdsStreams }: Pick<ServiceConfig, 'service' | 'config' | 'holdsStreams'>,
    connection: ServiceConnection,
  ) {
    this.type = service
    this.readsWindows = holdsStreams !== true
    this.#service = serviceOf(service)
    this.masks = this.#service.masks(config)
    this.#config = config
    this.#connection = connection
  }

  /** Checks all pieces; those after a refusal may not be sent. @throws GatewayError prompt_guard_failed */
  async ask({ direction, texts, exchange }: Question): Promise<Answer> {
    const pieces = this.#service.split(texts, direction, this.#config)
    const verdicts: Verdict[] = []
    for (let at = 0; at < pieces.length; at += maxCalls) {
      const some = pieces.slice(at, at + maxCalls)
      verdicts.push(
        ...(await Promise.all(some.map((piece) => this.#check(piece, direction, exchange)))),
      )
      if (verdicts.some(({ rejects }) => rejects)) break
    }
    const matches = ruleNames(verdicts.flatMap((verdict) => verdict.matches))
    if (verdicts.some(({ rejects }) => rejects)) return { type: 'reject', matches }
    return verdicts.some(({ masked }) => masked !== undefined)
      ? { type: 'mask', texts: withMasks(texts, pieces, verdicts), matches }
      : { type: 'pass' }
  }

  dispose(): void {}

  async #check(
    piece: Piece,
    direction: Question['direction'],
    exchange: Exchange,
  ): Promise<Verdict> {
    const { path, body } = this.#service.call(piece, direction, this.#config)
    const answer = parseDecision(await this.#connection.send(path, body, exchange))
    if (answer === undefined) throw guardFailure('the answer of the service is not JSON')
    return this.#service.verdict(answer, piece, this.#config)
  }
}

/** Puts masked parts into their texts. @throws GatewayError prompt_guard_failed if they cannot be joined */
function withMasks(
  texts: readonly RoleText[],
  pieces: readonly Piece[],
  verdicts: readonly Verdict[],
): RoleText[] {
  const parts = new Map<number, { readonly part: Part; readonly masked: string }[]>()
  for (const [at, piece] of pieces.entries()) {
    for (const [index, part] of piece.parts.entries()) {
      const masked = verdicts[at]?.masked?.[index] ?? part.content
      const known = parts.get(part.text)
      if (known === undefined) parts.set(part.text, [{ part, masked }])
      else known.push({ part, masked })
    }
  }
  return texts.map(({ role, content }, at) => {
    const joined = joinParts(parts.get(at) ?? [])
    if (joined === undefined) throw guardFailure('the masked parts of a long text do not fit')
    return { role, content: content === '' ? '' : joined }
  })
}
