/** The moderation guard: the endpoint of vendor A decides whether a text is flagged. */

import {
  booleanAt,
  listAt,
  objectAt,
  parseDecision,
} from '../../../../engines/messages/json/json.ts'
import type { ConnectionSettings } from '../../../../ground/exchange/connection.ts'
import { CopiedExchange } from '../../../../ground/exchange/derived.ts'
import type { Callouts, Exchange, RequestHead } from '../../../../ground/exchange/exchange.ts'
import { Extensions } from '../../../../ground/exchange/extensions.ts'
import { FieldPairs, MemoryBody } from '../../../../ground/exchange/memory-message.ts'
import { machineTls } from '../../../policies/backend-simple/tls/machine-tls.ts'
import type { Step } from '../../../policies/define.ts'
import type { ModerationConfig } from '../policy/config.ts'
import type { Answer, AskingGuard, Question } from './ask-guard.ts'
import { bytesOf, callGuard, guardFailure, jsonType, ruleNames } from './guard-call.ts'

const host = 'api.openai.com'
const path = '/v1/moderations'
const defaultModel = 'omni-moderation-latest'

export class ModerationGuard implements AskingGuard {
  readonly type = 'moderation'
  readonly #model: string
  readonly #steps: readonly Step[]
  readonly #callouts: Callouts
  #settings: ConnectionSettings | undefined

  /** `steps` are the policies of the connection, which add credentials or sign the call. */
  constructor(
    { model = defaultModel }: ModerationConfig,
    steps: readonly Step[],
    callouts: Callouts,
  ) {
    this.#model = model
    this.#steps = steps
    this.#callouts = callouts
  }

  /** Rejects if one of the texts is flagged. @throws GatewayError prompt_guard_failed */
  async ask({ texts, exchange }: Question): Promise<Answer> {
    if (texts.length === 0) return { type: 'pass' }
    const input = texts.map(({ content }) => content)
    const body = bytesOf({ input, model: this.#model })
    const call = new ModerationExchange(exchange, body)
    for (const step of this.#steps) {
      const verdict = await step.onRequest?.(call)
      if (verdict?.kind === 'respond') throw guardFailure('the moderation call has no credential')
    }
    const settings = this.#connection()
    const port = settings.tls === undefined ? 80 : 443
    const text = await callGuard(this.#callouts, {
      target: { type: 'server', host, port, settings },
      path,
      headers: [...call.request.headers.entries()],
      body,
    })
    return answerOf(text)
  }

  /** Creates the settings at the first call, because reading the machine's CA certificates takes time. */
  #connection(): ConnectionSettings {
    this.#settings ??= Object.assign(
      { tls: machineTls() },
      ...this.#steps.map(({ connection }) => connection),
    ) as ConnectionSettings
    return this.#settings
  }

  /** Does nothing, because the guard holds no memory of the core. */
  dispose(): void {}
}

function answerOf(text: string): Answer {
  const results = listAt(parseDecision(text), 'results')
  const flags = results.map((result) => booleanAt(result, 'flagged'))
  if (flags.length === 0 || flags.includes(undefined)) {
    throw guardFailure('the response of the moderation endpoint has no results')
  }
  if (!flags.includes(true)) return { type: 'pass' }
  const flagged = results.flatMap((result) => {
    const categories = objectAt(result, 'categories') ?? {}
    return Object.keys(categories).filter((name) => categories[name] === true)
  })
  return { type: 'reject', matches: ruleNames(flagged) }
}

/** The exchange that the policies of the connection process: the call to the moderation endpoint. */
class ModerationExchange extends CopiedExchange {
  readonly request: RequestHead
  readonly requestBody: MemoryBody
  readonly peerCertificate: Exchange['peerCertificate']
  readonly isOver = false
  readonly learned: Exchange['learned']
  readonly extensions = new Extensions()

  constructor(exchange: Exchange, body: Uint8Array) {
    super(exchange)
    this.request = {
      method: 'POST',
      scheme: 'https',
      authority: host,
      path,
      query: undefined,
      version: '1.1',
      headers: new FieldPairs([jsonType]),
    }
    this.requestBody = new MemoryBody(body)
    this.peerCertificate = exchange.peerCertificate
    this.learned = exchange.learned
  }
}
