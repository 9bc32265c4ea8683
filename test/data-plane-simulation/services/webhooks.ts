/** Webhooks of a world that guard the texts of models. */
import type { Random } from '../../virtual-time/random.ts'
import type { Exchange } from '../exchange.ts'
import { type Message, valuesOf } from '../http1-reader.ts'
import type { ServiceReply } from './http-service.ts'
import type { ServiceOwner } from './policy-services.ts'

const actions = [
  'pass',
  'pass',
  'mask',
  'mask',
  'reject',
  'error',
  'silence',
  'reset',
  'cut',
  // No action, an action with an unknown field, and a mask with a different number of texts.
  'garbage',
  'unknown',
  'short',
] as const

type Action = (typeof actions)[number]

/** What a webhook is meant to do with one direction of an exchange, and what it has done. */
export class Judgement {
  readonly action: Action
  readonly delayMs: number
  readonly status: number
  /** Whether it has sent that the texts may pass. */
  hasPassed = false
  asked = 0

  constructor(random: Random) {
    this.action = random.pick(actions)
    this.delayMs = random.chance(0.6) ? 0 : random.between(0, 500)
    this.status = random.pick([400, 403, 451])
  }

  get mayPass(): boolean {
    return this.action === 'pass' || this.action === 'mask'
  }

  /** Returns a text as the webhook lets it pass. */
  change(text: string): string {
    return this.action === 'mask' ? text.replaceAll('so', 'SO') : text
  }
}

interface Text {
  readonly role?: string
  readonly content: string
}

interface Asked {
  readonly messages?: readonly Text[]
  readonly choices?: readonly { readonly message: Text }[]
}

export function judge(message: Message, owner: ServiceOwner): ServiceReply | undefined {
  const direction = message.startLine.split(' ')[1] === '/request' ? 'request' : 'response'
  const text = message.body.toString()
  const exchange = owner.exchangeOf(valuesOf(message, 'x-tag').join())
  const judgement = exchange?.judgements[direction]
  if (exchange === undefined || judgement === undefined) return undefined
  judgement.asked++
  owner.seen(exchange, 'the webhook', message.body)
  if (exchange.chat?.hasSecret(text) === true) {
    owner.fail('protection', `${exchange.tag}: the webhook gets what a mask before it replaces`)
  }
  const { action, delayMs, status } = judgement
  const { body } = JSON.parse(text) as { body: Asked }
  const faults = ['silence', 'reset', 'cut'] as const
  return {
    delayMs,
    status: action === 'error' ? 500 : 200,
    fields: [['Content-Type', 'application/json']],
    body: replyTo(body, judgement, exchange, status),
    fault: faults.find((one) => one === action) ?? 'none',
    onSend: () => {
      judgement.hasPassed = judgement.mayPass
    },
  }
}

function replyTo(body: Asked, judgement: Judgement, { tag }: Exchange, status: number): string {
  const write = (action: unknown) => JSON.stringify({ action })
  switch (judgement.action) {
    case 'mask':
      return write({ body: changed(body, (text) => judgement.change(text)) })
    case 'short':
      return write({ body: body.choices === undefined ? {} : { choices: [] } })
    case 'reject':
      return write({ body: `${tag} is rejected`, status_code: status })
    case 'garbage':
      return `{"action": ${tag}`
    case 'unknown':
      return write({ verdict: 'block' })
    default:
      return write({})
  }
}

function changed({ messages, choices }: Asked, change: (text: string) => string) {
  const one = (text: Text) => ({ ...text, content: change(text.content) })
  if (messages !== undefined) return { messages: messages.map(one) }
  return { choices: choices?.map(({ message }) => ({ message: one(message) })) }
}
