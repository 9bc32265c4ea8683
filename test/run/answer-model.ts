/**
 * Random traffic on a cache of answers that two proxies share, and a model of which answers each request may get:
 * those that the same client could have got for an equal request under the present configuration.
 */
import type { ServerResponse } from 'node:http'
import {
  aiBackend,
  gateway,
  type Manifest,
  policy,
  routeByPath,
  secret,
} from '../support/manifests.ts'
import { json, openStream, sendEvent, type VendorCall } from '../support/vendors/vendor.ts'
import { chunk, completion, usageA } from '../support/vendors/vendor-a.ts'
import type { Random } from '../virtual-time/random.ts'

const clients = ['ann', 'bob', 'nobody'] as const
type Client = (typeof clients)[number]
const routes = ['own', 'shared', 'brief', 'masked', 'checked', 'passed'] as const
type Route = (typeof routes)[number]
const directives = ['no-cache', 'no-store', 'max-age=0', 'max-age=3600', 'only-if-cached', 'off']
const faults = ['error', 'cut', 'length', 'no-store'] as const
type Fault = (typeof faults)[number]
/** The words of every answer, of which the configuration masks one on the route `masked`. */
export const words = ['alpha-word', 'beta-word'] as const

const briefMs = 300
/** How much later a client may see the end of an answer than the gateway stores it, or the other way around. */
const slackMs = 100
/** The answers of a client that opts out are its own, and are not stored. */
const isOptOut = (directive: string | undefined) => directive === 'off' || directive === 'no-store'
const isOwnOnly = (directive: string | undefined) =>
  isOptOut(directive) || directive === 'no-cache' || directive === 'max-age=0'

/** What changes in the configuration. */
export interface State {
  /** The word that guards replace. */
  readonly masked: string
  /** Whether the API key of bob is valid. */
  readonly hasBob: boolean
}

/** The manifests of a proxy. */
export function manifestsOf(port: number, vendorPort: number, state: State): Manifest[] {
  const at = { vendorA: {}, host: '127.0.0.1', port: vendorPort }
  const guard = { response: [{ regex: { matches: [state.masked] } }] }
  const check = { request: [{ regex: { builtins: ['Email'] } }] }
  const settings: Readonly<Record<Route, object>> = {
    own: { cache: {} },
    shared: { cache: { scope: 'Shared' } },
    brief: { cache: { ttl: `${briefMs}ms` } },
    masked: { cache: {}, promptGuard: guard },
    checked: { cache: {}, promptGuard: check },
    passed: { cache: {} },
  }
  const keys = { apiKeyAuthentication: { secretRef: { name: 'keys' }, mode: 'Optional' } }
  const ofRoute = (name: Route): Manifest[] => {
    const auth = name === 'passed' ? { passthrough: {} } : { key: 'k' }
    return [
      aiBackend(name, { provider: at }, { ai: settings[name], auth }),
      routeByPath(name),
      ...(name === 'passed'
        ? []
        : [policy(`keys-${name}`, `HTTPRoute/${name}`, { traffic: keys })]),
    ]
  }
  const secrets = secret('keys', {
    ann: 'key-of-ann',
    ...(state.hasBob && { bob: 'key-of-bob' }),
  })
  return [gateway(port), secrets, ...routes.flatMap(ofRoute)]
}

/** One request, with what its client got. */
interface Exchange {
  readonly id: number
  readonly proxy: number
  readonly client: Client
  readonly route: Route
  /** Equal for requests that may get the same answer. */
  readonly asked: string
  /** The word that was masked. */
  readonly masked: string
  readonly isRefused: boolean
  readonly directive: string | undefined
  readonly leaves: boolean
  readonly sentAt: number
  endedAt: number
  status: number
  text: string
  cacheStatus: string
}

/** An answer of the provider, whose text has its number. */
interface Origin {
  readonly exchange: number
  readonly fault: Fault | undefined
}

export class AnswerModel {
  readonly exchanges: Exchange[] = []
  readonly #origins: Origin[] = []
  readonly #random: Random
  readonly #ports: readonly number[]
  /** What clients have got of each answer. */
  readonly #texts = new Map<string, string>()
  state: State = { masked: words[0], hasBob: true }
  hits = 0
  /** Hits of answers that another proxy has got. */
  sharedHits = 0

  constructor(random: Random, ports: readonly number[]) {
    this.#random = random
    this.#ports = ports
  }

  /** Answers as the provider. */
  readonly answer = ({ body, headers }: VendorCall, response: ServerResponse): void => {
    const random = this.#random
    const fault = random.chance(0.25) ? random.pick(faults) : undefined
    const number = this.#origins.push({ exchange: Number(headers['x-exchange']), fault }) - 1
    const text = `answer <${number}> ${words.join(' ')}`
    if (fault === 'no-store') response.setHeader('cache-control', 'no-store')
    if (fault === 'error') json(response, 500, { error: { message: `failed <${number}>` } })
    else if (body.stream === true) stream(response, text, fault)
    else if (fault === 'cut') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '10000' })
      response.write('{"choices":', () => response.destroy())
    } else json(response, 200, whole(text, fault))
  }

  /** Sends up to four requests at the same time, of which some are equal. Returns what is wrong. */
  async step(): Promise<string[]> {
    const random = this.#random
    const first = this.#choose()
    const batch = Array.from({ length: 1 + random.below(4) }, () =>
      random.chance(0.6) ? first : this.#choose(),
    )
    const done = await Promise.all(batch.map((choice) => this.#send(choice)))
    return done.flatMap((one) => this.#problemsOf(one).map((text) => `${describe(one)}: ${text}`))
  }

  #choose(): Choice {
    const random = this.#random
    return {
      route: random.pick(routes),
      model: random.pick(['gpt-4o', 'gpt-4o', 'gpt-4o-mini']),
      question: random.below(2),
      tool: random.pick([undefined, undefined, 'find']),
      isStream: random.chance(0.4),
      organization: random.chance(0.1) ? 'other' : undefined,
    }
  }

  async #send(choice: Choice): Promise<Exchange> {
    const random = this.#random
    const { route, isStream, organization } = choice
    const client = random.pick(clients)
    const directive = random.chance(0.3) ? random.pick(directives) : undefined
    const proxy = random.below(this.#ports.length)
    const exchange: Exchange = {
      ...{ id: this.exchanges.length, proxy, client, route, directive },
      asked: JSON.stringify(choice),
      masked: route === 'masked' ? this.state.masked : '',
      isRefused: client === 'bob' && route !== 'passed' && !this.state.hasBob,
      leaves: isStream && random.chance(0.1),
      sentAt: performance.now(),
      ...{ endedAt: 0, status: 0, text: '', cacheStatus: '' },
    }
    this.exchanges.push(exchange)
    const key = route === 'passed' ? `sk-${client}` : `key-of-${client}`
    const headers = {
      'content-type': 'application/json',
      'x-exchange': `${exchange.id}`,
      ...(client !== 'nobody' && { authorization: `Bearer ${key}` }),
      ...(organization !== undefined && { 'openai-organization': organization }),
      ...(directive === 'off' && { 'x-sluice-cache': 'off' }),
      ...(directive !== undefined && directive !== 'off' && { 'cache-control': directive }),
    }
    const url = `http://127.0.0.1:${this.#ports[proxy]}/${route}/v1/chat/completions`
    const leaving = new AbortController()
    try {
      const body = bodyOf(choice, random)
      const response = await fetch(url, { method: 'POST', headers, body, signal: leaving.signal })
      exchange.status = response.status
      exchange.cacheStatus = response.headers.get('cache-status') ?? ''
      if (exchange.leaves) leaving.abort()
      exchange.text = await response.text()
    } catch {
      exchange.status = 0
    }
    exchange.endedAt = performance.now()
    return exchange
  }

  #problemsOf(one: Exchange): string[] {
    const { id, status, text, directive, cacheStatus } = one
    if (status === 0) return []
    if (one.isRefused) return status === 401 ? [] : [`gets ${status}, although its key is removed`]
    if (status === 504 && directive === 'only-if-cached') return []
    const numbers = [...new Set([...text.matchAll(/<(\d+)>/g)].map(([, number]) => Number(number)))]
    const [number = -1] = numbers
    const origin = this.#origins[number]
    if (numbers.length > 1) return [`gets the answers ${numbers}`]
    if (origin === undefined)
      return status < 500 && !cacheStatus.includes('miss') ? ['no answer'] : []
    if (one.masked !== '' && text.includes(one.masked)) return ['gets a text that guards mask']
    if (origin.exchange === id) return this.#noteText(one, number)
    const from = this.exchanges[origin.exchange]
    if (from === undefined) return [`gets the answer to the unknown ${origin.exchange}`]
    this.hits++
    if (from.proxy !== one.proxy) this.sharedHits++
    const problems = [...differences(one, from), ...this.#noteText(one, number)]
    if (origin.fault !== undefined) problems.push(`gets an answer with the fault ${origin.fault}`)
    if (isOwnOnly(directive)) problems.push(`gets a stored answer in spite of ${directive}`)
    if (isOptOut(from.directive)) problems.push(`gets an answer of a client that opts out`)
    if (one.route === 'brief' && one.sentAt > from.endedAt + briefMs + slackMs) {
      problems.push('gets an answer after its time to live')
    }
    return problems.map((problem) => `${problem}, of ${describe(from)}`)
  }

  /** All clients get the same bytes of an answer that is stored. */
  #noteText({ text, masked, leaves }: Exchange, number: number): string[] {
    if (leaves || this.#origins[number]?.fault !== undefined) return []
    const key = `${number} ${masked}`
    const before = this.#texts.get(key) ?? text
    this.#texts.set(key, before)
    return before === text ? [] : [`gets "${text}" in place of "${before}"`]
  }
}

interface Choice {
  readonly route: Route
  readonly model: string
  readonly question: number
  readonly tool: string | undefined
  readonly isStream: boolean
  readonly organization: string | undefined
}

const describe = ({ id, proxy, client, directive, asked, cacheStatus }: Exchange): string =>
  `request ${id} of ${client} to proxy ${proxy} (${directive ?? ''}; ${cacheStatus}) ${asked}`

function differences(one: Exchange, from: Exchange): string[] {
  const isOther = (name: 'asked' | 'route' | 'masked') => one[name] !== from[name]
  const problems = (['asked', 'route', 'masked'] as const)
    .filter(isOther)
    .map((name) => `gets an answer to another ${name}`)
  if (one.route === 'shared') return problems
  if (one.client !== from.client) problems.push('gets an answer of another client')
  if (one.client === 'nobody') problems.push('has no credentials and gets a stored answer')
  return problems
}

/** Writes a request with its members in any order and with any white space. */
function bodyOf({ model, question, tool, isStream }: Choice, random: Random): string {
  const functionOf = (name: string) => ({ name, parameters: { type: 'object' } })
  const content = `Question ${question} of someone@example.com`
  const members: (readonly [string, unknown])[] = [
    ['model', model],
    ['messages', [{ role: 'user', content }]],
    ...(isStream ? [['stream', true] as const] : []),
    ...(tool === undefined
      ? []
      : [['tools', [{ type: 'function', function: functionOf(tool) }]] as const]),
  ]
  // Most clients send the same bytes again.
  if (random.chance(0.2)) members.reverse()
  return JSON.stringify(Object.fromEntries(members), null, random.chance(0.2) ? 1 : 0)
}

const endOf = (fault: Fault | undefined) => (fault === 'length' ? 'length' : 'stop')

function whole(text: string, fault: Fault | undefined): object {
  const plain = completion('gpt-4o', text) as { choices: object[] }
  return {
    ...plain,
    choices: plain.choices.map((one) => ({ ...one, finish_reason: endOf(fault) })),
  }
}

function stream(response: ServerResponse, text: string, fault: Fault | undefined): void {
  openStream(response)
  const middle = text.length / 2
  sendEvent(response, chunk('gpt-4o', { content: text.slice(0, middle) }))
  if (fault === 'cut') {
    setImmediate(() => response.destroy())
    return
  }
  sendEvent(response, chunk('gpt-4o', { content: text.slice(middle) }))
  sendEvent(response, chunk('gpt-4o', {}, endOf(fault)))
  sendEvent(response, { ...chunk('gpt-4o', {}), choices: [], usage: usageA })
  sendEvent(response, '[DONE]')
  response.end()
}
