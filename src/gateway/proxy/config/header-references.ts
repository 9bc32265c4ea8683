/** Names of request headers that the configuration refers to, so that records may contain their values. */
import type { Resource } from '../../../ground/model/resources.ts'
import type { PolicyDefinition } from '../../policies/define.ts'

/** Matches `headers.name` and `headers["name"]` of an expression, which may be part of a JSON text. */
const member = /\bheaders\s*(?:\.\s*([A-Za-z_]\w*)|\[\s*\\?(["'])([\w!#$%&'*+.^`|~-]+)\\?\2\s*\])/g

function* namesIn(resource: Resource): Generator<string> {
  if (resource.type === 'route') {
    for (const { headers } of resource.matches) for (const { name } of headers) yield name
  } else if (resource.type === 'policy') {
    for (const [, dotted, , quoted] of resource.config.matchAll(member)) {
      const name = dotted ?? quoted
      if (name !== undefined) yield name
    }
    yield* readBy[resource.field] ?? []
  }
}

function matchesNames(resource: Resource | undefined): boolean {
  if (resource?.type !== 'route') return false
  return resource.matches.some(({ headers }) =>
    headers.some(({ name }) => anyNameHeader.test(name)),
  )
}

/** Headers that policies read without an expression. */
const readBy: { readonly [field: string]: readonly string[] } = {
  cors: ['origin', 'access-control-request-method', 'access-control-request-headers'],
  csrf: ['origin', 'sec-fetch-site'],
  oidc: [
    'accept',
    'access-control-request-method',
    'origin',
    'sec-fetch-dest',
    'sec-fetch-mode',
    'sec-fetch-site',
    'sec-purpose',
    'x-requested-with',
  ],
}

/** Headers that name the message in the body. Older clients do not send them. */
const nameHeaders: readonly string[] = ['mcp-method', 'mcp-name']

const anyNameHeader = new RegExp(nameHeaders.join('|'), 'i')

/** Returns whether the policy reads the headers. `config` is its compiled form as JSON. */
export function readsNames({ seesAllHeaders }: PolicyDefinition, config: string): boolean {
  return seesAllHeaders === true || anyNameHeader.test(config)
}

const signsIn = (resource: Resource | undefined): boolean =>
  resource?.type === 'policy' && resource.field === 'oidc'

export class HeaderReferences {
  /** Number of routes that match headers which name a message. */
  #routesByName = 0
  /** Number of policies that sign browsers in. */
  #signIns = 0
  readonly #counts = new Map<string, number>()
  /** Incremented when a name was added or removed. */
  generation = 0

  has(name: string): boolean {
    return this.#counts.has(name)
  }

  /** Whether any route matches a header that names a message. */
  get routesByName(): boolean {
    return this.#routesByName > 0
  }

  /** Whether any policy signs browsers in, so that requests to all routes of its hosts may have its cookies. */
  get hasSignIn(): boolean {
    return this.#signIns > 0
  }

  replace(before: Resource | undefined, after: Resource | undefined): void {
    if (after !== undefined) for (const name of namesIn(after)) this.#count(name.toLowerCase(), 1)
    if (before !== undefined)
      for (const name of namesIn(before)) this.#count(name.toLowerCase(), -1)
    this.#routesByName += Number(matchesNames(after)) - Number(matchesNames(before))
    this.#signIns += Number(signsIn(after)) - Number(signsIn(before))
  }

  #count(name: string, change: 1 | -1): void {
    const count = this.#counts.get(name) ?? 0
    if (count + change > 0) this.#counts.set(name, count + change)
    else this.#counts.delete(name)
    if (count === 0 || count + change === 0) this.generation++
  }
}
