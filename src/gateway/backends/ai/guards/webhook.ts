/**
 * The webhook guard: sends the texts to `/request` or `/response` of a service, whose response
 * `{"action": …}` masks, rejects or passes the message. Any other response is a failure, which rejects it.
 */
import { compileRegex, type Regex } from '../../../../engines/core/index.ts'
import {
  field,
  isObject,
  type JsonObject,
  parseDecision,
  stringAt,
} from '../../../../engines/messages/json/json.ts'
import type { RoleText } from '../../../../engines/messages/mask/slot.ts'
import type { Callouts, CalloutTarget } from '../../../../ground/exchange/exchange.ts'
import type { HeaderForward, WebhookConfig } from '../policy/config.ts'
import type { Answer, AskingGuard, Direction, Question } from './ask-guard.ts'
import { bytesOf, callGuard, guardFailure, jsonType } from './guard-call.ts'

export class WebhookGuard implements AskingGuard {
  readonly type = 'webhook'
  readonly masks = true
  readonly readsWindows: boolean
  readonly #target: CalloutTarget
  readonly #forwarder: HeaderForwarder
  readonly #callouts: Callouts

  constructor({ target, forward, holdsStreams }: WebhookConfig, callouts: Callouts) {
    if (target.type === 'invalid') throw new Error(target.message)
    this.readsWindows = holdsStreams !== true
    this.#target = target
    this.#forwarder = new HeaderForwarder(forward)
    this.#callouts = callouts
  }

  /** @throws GatewayError prompt_guard_failed */
  async ask({ direction, texts, headers }: Question): Promise<Answer> {
    const text = await callGuard(this.#callouts, {
      target: this.#target,
      path: `/${direction}`,
      headers: [jsonType, ...this.#forwarder.pick(headers)],
      body: bytesOf(writeTexts(direction, texts)),
    })
    const action = readAction(text, direction)
    if (action === undefined)
      throw guardFailure('the response of the webhook is no action that the gateway knows')
    return action
  }

  dispose(): void {
    this.#forwarder.dispose()
  }
}

function writeTexts(direction: Direction, texts: readonly RoleText[]): JsonObject {
  return direction === 'request'
    ? { body: { messages: texts } }
    : { body: { choices: texts.map((message) => ({ message })) } }
}

const actionNames = ['body', 'reason', 'status_code'] as const

/**
 * Returns undefined if the response is none of the three actions, exactly: a response that the gateway only partly
 * understands could be a refusal. Null counts as absent.
 */
function readAction(text: string, direction: Direction): Answer | undefined {
  const decision = parseDecision(text)
  const action = field(decision, 'action')
  if (!hasOnly(decision, ['action']) || !hasOnly(action, actionNames)) return undefined
  const [body, reason, status] = actionNames.map((name) => field(action, name) ?? undefined)
  if (reason !== undefined && typeof reason !== 'string') return undefined
  if (isObject(body)) return status === undefined ? readMask(body, direction) : undefined
  if (body !== undefined && typeof body !== 'string') return undefined
  if (status !== undefined && typeof status !== 'number') return undefined
  if (body === undefined && status === undefined) return { type: 'pass' }
  const isStatus =
    status !== undefined && Number.isInteger(status) && status >= 200 && status <= 599
  return { type: 'reject', status: isStatus ? status : undefined, body }
}

function hasOnly(value: unknown, names: readonly string[]): value is JsonObject {
  return isObject(value) && Object.keys(value).every((name) => names.includes(name))
}

/** Returns undefined if a text is missing; a missing role becomes empty. */
function readMask(body: JsonObject, direction: Direction): Answer | undefined {
  const list = field(body, direction === 'request' ? 'messages' : 'choices')
  if (!Array.isArray(list)) return undefined
  const texts: RoleText[] = []
  for (const item of list) {
    const message = direction === 'request' ? item : field(item, 'message')
    const content = stringAt(message, 'content')
    const role = field(message, 'role') ?? ''
    if (content === undefined || typeof role !== 'string') return undefined
    texts.push({ role, content })
  }
  return { type: 'mask', texts }
}

/** Headers that are not forwarded, because they describe the call itself. */
const neverForwarded = new Set(['content-length', 'host', 'transfer-encoding', 'content-type'])

/** Selects the headers to forward: all values of a name if one of them matches. */
class HeaderForwarder {
  readonly #forward: readonly HeaderForward[]
  readonly #patterns = new Map<string, Regex>()

  constructor(forward: readonly HeaderForward[]) {
    this.#forward = forward.filter(({ name }) => !neverForwarded.has(name))
    for (const { type, value } of this.#forward) if (type !== 'Exact') this.#pattern(value)
  }

  pick(headers: Question['headers']): (readonly [string, string])[] {
    const picked = new Set<string>()
    return this.#forward.flatMap(({ name, type, value: wanted }) => {
      const values = headers.getAll(name)
      const matches = (value: string) =>
        type === 'Exact' ? value === wanted : this.#pattern(wanted).fullMatch(value)
      if (picked.has(name) || !values.some(matches)) return []
      picked.add(name)
      return values.map((value) => [name, value] as const)
    })
  }

  dispose(): void {
    for (const pattern of this.#patterns.values()) pattern.dispose()
    this.#patterns.clear()
  }

  #pattern(source: string): Regex {
    const known = this.#patterns.get(source)
    if (known !== undefined) return known
    const outcome = compileRegex(source, { matchOnly: true })
    if (!outcome.ok) throw new Error(outcome.message)
    this.#patterns.set(source, outcome.regex)
    return outcome.regex
  }
}
